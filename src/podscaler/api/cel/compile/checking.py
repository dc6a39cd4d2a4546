"""Checks the types of CEL expressions.

    checker = Checker(environment.FUNCTIONS, {"self": types.STRING})
    checker.type_of(parsing.parse("self.size() > 1"))      BOOL; checker.issues is empty

Called by `programs` for every new expression. All errors are collected, with cel-go's messages and offsets. Operators
are functions (`_+_`), whose signatures are in `podscaler.api.cel.library.standard`: a new operator or function needs
nothing here, a new type of node a case of `_check`.

Source: the CEL specification, "Type checking"; cel-go's checker (documented behaviour): overloads are tried in
order, the elements of a list or map literal must be of one type.
"""

from collections.abc import Mapping
from typing import NamedTuple

from podscaler.api.cel.library.functions import Overload, Table
from podscaler.api.cel.values import types
from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.numbers import Uint
from podscaler.api.cel.values.syntax_tree import (
    RESULT,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from podscaler.api.cel.values.types import DYN, ERROR, INT, STRING, Bindings, Type

_LOGIC_OPERATORS = frozenset({"_&&_", "_||_"})
_RESERVED_WORDS = "as break const continue else for function if import let loop package namespace return var void while"
KEYWORDS = {word: f"__{word}__" for word in _RESERVED_WORDS.split()}
"""Reserved words, with their escaped form in the types of objects; members may have such a name, variables may not."""

_LITERALS: dict[type, Type] = {
    bool: types.BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class LiteralPart(NamedTuple):
    """A part of a list or map literal.

    Attributes:
        literal: the ListLiteral or MapLiteral.
        role: `element`, `key` or `value`.
        node: the part.
        type: the type of the part.
    """

    literal: Node
    role: str
    node: Node
    type: Type


class Checker:
    """Checks one expression; make a new one for each.

    Args:
        functions: the overloads of all functions.
        idents: the types of the variables, and of the identifiers that name types.

    Attributes:
        issues: the type errors found.
        used_names: the variables, and identifiers of types, that the expression names.
        literal_parts: the parts of all list and map literals.
    """

    def __init__(self, functions: Table, idents: Mapping[str, Type]) -> None:
        self._functions = functions
        self._scopes: list[Mapping[str, Type]] = [idents]
        self._bindings: Bindings = {}
        self._new_param_count = 0
        self.issues: list[Issue] = []
        self.used_names: set[str] = set()
        self.literal_parts: list[LiteralPart] = []

    def type_of(self, tree: Node) -> Type:
        """The type of a whole expression; sets `issues`, `used_names` and `literal_parts`."""
        tree_type = types.resolve(self._bindings, self._check(tree), free_is_dynamic=True)
        self.literal_parts = [part._replace(type=self._resolve_type(part.type)) for part in self.literal_parts]
        return tree_type

    def _resolve_type(self, cel_type: Type) -> Type:
        return types.resolve(self._bindings, cel_type)

    def _bind(self, expected: Type, actual: Type) -> bool:
        """Whether `actual` is assignable to `expected`; keeps the bindings of type parameters with which it is."""
        bindings = types.find_bindings(self._bindings, expected, actual)
        if bindings is None:
            return False
        self._bindings = bindings
        return True

    def _check(self, node: Node) -> Type:
        """The type of an expression, by the kind of its node."""
        match node:
            case Literal():
                return _LITERALS[type(node.value)]
            case Ident():
                return self._check_ident(node)
            case Select():
                return self._check_select(node)
            case Call():
                return self._check_call(node)
            case ListLiteral():
                return self._check_list(node)
            case MapLiteral():
                return self._check_map(node)
            case Comprehension():
                return self._check_comprehension(node)

    def _report(self, offset: int, message: str) -> Type:
        """Add an issue; the type ERROR of the part with it, which is assignable to all others: one issue is enough."""
        self.issues.append(Issue(offset, message))
        return ERROR

    def _report_undeclared(self, offset: int, name: str) -> Type:
        return self._report(offset, f"undeclared reference to '{name}' (in container '')")

    def _resolve_ident(self, name: str) -> Type | None:
        """The type of an identifier in the innermost scope that has it (the outermost for a leading dot), or None.

        Adds the identifier to `used_names` if it is found.
        """
        scopes = self._scopes[:1] if name.startswith(".") else reversed(self._scopes)
        bare_name = name.removeprefix(".")
        for scope in scopes:
            if bare_name in scope:
                self.used_names.add(bare_name)
                return scope[bare_name]
        return None

    def _check_ident(self, node: Ident) -> Type:
        variable = self._resolve_ident(node.name)
        return variable if variable is not None else self._report_undeclared(node.offset, node.name)

    def _check_select(self, node: Select) -> Type:
        """The type of `a.b.c`: of a variable with that dotted name if one is declared, else of a field of `a.b`."""
        name = dotted_name(node)
        variable = self._resolve_ident(name) if name else None
        if variable is not None and not node.is_test:
            return variable
        member_type = self._check_member(node.offset, node.operand, node.field)
        return types.BOOL if node.is_test else member_type

    def _check_member(self, offset: int, operand: Node, field: str, *, is_optional: bool = False) -> Type:
        """The type of `operand.field`; optional if the operand is, or with `is_optional` (`operand.?field`)."""
        operand_type = types.resolve(self._bindings, self._check(operand))
        container_type = operand_type.type_args[0] if operand_type.name == types.OPTIONAL else operand_type
        member_type = self._check_field(offset, types.resolve(self._bindings, container_type), field)
        is_result_optional = operand_type.name == types.OPTIONAL or is_optional
        return types.optional_of(member_type) if is_result_optional else member_type

    def _check_field(self, offset: int, container_type: Type, field: str) -> Type:
        """The type of a field of a value; DYN if the fields of its type are not known."""
        if container_type.fields is not None:
            field_type = container_type.fields.get(field) or container_type.fields.get(KEYWORDS.get(field, ""))
            return field_type if field_type is not None else self._report(offset, f"undefined field '{field}'")
        if container_type.name == "map":
            return container_type.type_args[1]
        if container_type.is_param:
            self._bind(DYN, container_type)  # the fields of the parameter's type are not known
        elif "." in container_type.name:
            self._report(offset, f"unexpected failed resolution of '{container_type}'")
        elif not types.is_dynamic(container_type):
            self._report(offset, f"type '{container_type}' does not support field selection")
        return DYN

    def _check_call(self, node: Call) -> Type:
        """The type of a call: of an operator, a function (`sets.contains(a, b)` too), or a method of the target."""
        if node.function == "_?._":
            operand, name = node.args
            field = name.value if isinstance(name, Literal) else ""
            return self._check_member(node.offset, operand, field, is_optional=True)
        arg_types = [self._check(arg) for arg in node.args]
        if node.function in _LOGIC_OPERATORS:
            return self._check_logic(node, arg_types)
        if node.target is None:
            return self._resolve_overload(node, node.function.removeprefix("."), arg_types)
        prefix = dotted_name(node.target)
        dotted_function = f"{prefix}.{node.function}".removeprefix(".")
        if prefix and dotted_function in self._functions:
            return self._resolve_overload(node, dotted_function, arg_types)
        arg_types.insert(0, self._check(node.target))
        return self._resolve_overload(node, node.function, arg_types, is_method=True)

    def _check_logic(self, node: Call, arg_types: list[Type]) -> Type:
        """`&&` and `||`, with an error for each operand."""
        for arg, arg_type in zip(node.args, arg_types, strict=True):
            if not self._bind(types.BOOL, arg_type):
                self._report_mismatch(arg, types.BOOL, arg_type)
        return types.BOOL

    def _resolve_overload(self, node: Call, name: str, arg_types: list[Type], *, is_method: bool = False) -> Type:
        """The result type of the overloads that accept the arguments; reports an issue if none does."""
        overloads = self._functions.get(name)
        if overloads is None:
            return self._report_undeclared(node.offset, node.function if node.target is None else name)
        result_type: Type | None = None
        for overload in overloads:
            if overload.is_method is is_method:
                result_type = self._try_overload(overload, tuple(arg_types), result_type)
        if result_type is not None:
            return result_type
        printed_types = [types.resolve(self._bindings, arg_type, free_is_dynamic=True) for arg_type in arg_types]
        signature = f"({_join_types(printed_types)})"
        if is_method:
            target_type, *param_types = printed_types
            signature = f"{target_type}.({_join_types(param_types)})"
        return self._report(node.offset, f"found no matching overload for '{name}' applied to '{signature}'")

    def _try_overload(
        self, overload: Overload, arg_types: tuple[Type, ...], earlier_result: Type | None
    ) -> Type | None:
        """The type of the call, given that by the overloads before; dyn if two overloads that fit differ in it."""
        type_variables: Bindings = {}
        params = tuple(self._instantiate(param, type_variables) for param in overload.params)
        bindings = types.find_bindings_of_args(self._bindings, arg_types, params)  # arguments first, as in cel-go
        if bindings is None:
            return earlier_result
        self._bindings = bindings
        overload_result = types.resolve(bindings, self._instantiate(overload.result, type_variables))
        if earlier_result is None or overload_result == earlier_result:
            return overload_result
        return DYN

    def _instantiate(self, cel_type: Type, type_variables: Bindings) -> Type:
        """The type with new parameters in place of its own."""
        if cel_type.is_param:
            if cel_type.name not in type_variables:
                type_variables[cel_type.name] = self._new_param()
            return type_variables[cel_type.name]
        if not cel_type.type_args:
            return cel_type
        return Type(
            cel_type.name,
            tuple(self._instantiate(type_arg, type_variables) for type_arg in cel_type.type_args),
            cel_type.fields,
        )

    def _new_param(self) -> Type:
        self._new_param_count += 1
        return Type(f"_var{self._new_param_count}", is_param=True)

    def _check_list(self, node: ListLiteral) -> Type:
        """The type of a list: that of its elements, if they have one in common."""
        common_type: Type | None = None
        for index, element in enumerate(node.elements):
            element_type = self._check(element)
            if index in node.optional_indices:
                element_type = self._unwrap_optional(element, element_type)
            self.literal_parts.append(LiteralPart(node, "element", element, element_type))
            common_type = self._common_type(common_type, element_type)
        return types.list_of(common_type if common_type is not None else self._new_param())

    def _check_map(self, node: MapLiteral) -> Type:
        """The type of a map: those of its keys and values, if they have one in common each.

        A message is reported as undeclared: there are no message types (`environment`).
        """
        if node.name:
            for map_entry in node.entries:
                self._check(map_entry.value)
            return self._report_undeclared(node.offset, node.name)
        common_key_type: Type | None = None
        common_value_type: Type | None = None
        for map_entry in node.entries:
            key_type = self._check(map_entry.key)
            value_type = self._check(map_entry.value)
            if map_entry.is_optional:
                value_type = self._unwrap_optional(map_entry.value, value_type)
            self.literal_parts.append(LiteralPart(node, "key", map_entry.key, key_type))
            self.literal_parts.append(LiteralPart(node, "value", map_entry.value, value_type))
            common_key_type = self._common_type(common_key_type, key_type)
            common_value_type = self._common_type(common_value_type, value_type)
        if common_key_type is None or common_value_type is None:
            return types.map_of(self._new_param(), self._new_param())
        return types.map_of(common_key_type, common_value_type)

    def _unwrap_optional(self, node: Node, optional_type: Type) -> Type:
        """The type in an optional value, for `[?x]` and `{?k: x}`; reports an issue if it is not optional."""
        optional_type = types.resolve(self._bindings, optional_type)
        if optional_type.name == types.OPTIONAL:
            return optional_type.type_args[0]
        if not types.is_dynamic(optional_type):
            self._report_mismatch(node, types.optional_of(optional_type), optional_type)
        return optional_type

    def _common_type(self, previous_type: Type | None, new_type: Type) -> Type:
        """The common type of an element and of those before it; dyn if there is none."""
        if previous_type is None:
            return new_type
        return types.most_general(previous_type, new_type) if self._bind(previous_type, new_type) else DYN

    def _report_mismatch(self, node: Node, expected: Type, actual: Type) -> None:
        expected_type, actual_type = self._resolve_type(expected), self._resolve_type(actual)
        self._report(node.offset, f"expected type '{expected_type}' but found '{actual_type}'")

    def _check_comprehension(self, node: Comprehension) -> Type:
        """The type of an expanded macro: its step must have the type of its start value."""
        source = types.resolve(self._bindings, self._check(node.source))
        start = self._check(node.start)
        if node.kind == "bind":
            return self._check_in_scope({node.names[1]: start}, node.outcome)
        self._scopes.append({RESULT: start})
        self._scopes.append(self._types_of_loop_variables(node, source))
        step = self._check(node.step)
        if not self._bind(start, step):
            self._report_mismatch(node.step, start, step)
        self._scopes.pop()
        result_type = self._check(node.outcome)
        self._scopes.pop()
        return types.resolve(self._bindings, result_type)

    def _check_in_scope(self, variables: Mapping[str, Type], node: Node) -> Type:
        """The type of an expression that may use these variables, too."""
        self._scopes.append(variables)
        type_of_node = self._check(node)
        self._scopes.pop()
        return type_of_node

    def _types_of_loop_variables(self, node: Comprehension, source: Type) -> dict[str, Type]:
        """The types of the variables that run over `source`."""
        if source.name == "list":
            element_types = (INT, source.type_args[0]) if len(node.names) == 2 else source.type_args
        elif source.name == "map":
            element_types = source.type_args
        elif source.is_param or types.is_dynamic(source):
            self._bind(DYN, source)
            element_types = (DYN, DYN)
        else:
            message = (
                f"expression of type '{source}' cannot be range of a comprehension (must be list, map, or dynamic)"
            )
            self._report(node.source.offset, message)
            element_types = (ERROR, ERROR)
        return dict(zip(node.names, element_types, strict=False))


def dotted_name(node: Node) -> str:
    """`a.b.c` for a chain of plain names, else empty. Used by `planning`, too."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.is_test:
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""


def _join_types(listed_types: list[Type]) -> str:
    return ", ".join(map(str, listed_types))
