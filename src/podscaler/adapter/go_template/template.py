"""Parses and executes a template in Go's text/template language, with the delimiters << and >>.

Called by `naming.queries` and `naming.resource_labels`:
`Template("sum(<<.Series>>)").execute({"Series": "http_requests"})` is `sum(http_requests)`. A new kind of node in
`parsing` needs a case in `_mentioned_fields` and in `_Execution`.

Source: documentation of Go's package text/template.
Differs: in a block `:=` assigns to an outer variable of the same name, instead of hiding it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from podscaler.adapter.go_template import functions, parsing
from podscaler.adapter.go_template.functions import FUNCTIONS
from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.adapter.go_template.parsing import (
    Block,
    FieldAccess,
    FunctionCall,
    Node,
    Operand,
    Pipeline,
    TemplateConstant,
    TemplateVariable,
)

OUTPUT_MAX_CHARACTERS = 1 << 20


class Template:
    """A parsed template.

    Args:
        text: the template.

    Attributes:
        text: the template.
        fields: the fields of the data that the template mentions anywhere.

    Raises:
        TemplateError: the template cannot be parsed, or calls a function that does not exist.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._nodes = parsing.parse(text)
        self.fields = frozenset(_mentioned_fields(self._nodes))

    def execute(self, data: Mapping[str, Any]) -> str:
        """The text for `data`, the values by field (`.Series` is `data["Series"]`). Raises TemplateError."""
        return _Execution(data).run(self._nodes)


def _mentioned_fields(tree: Any) -> list[str]:
    """The names of fields in a tree. Raises TemplateError for an unknown function."""
    if isinstance(tree, tuple | list):
        return [name for subtree in tree for name in _mentioned_fields(subtree)]
    if isinstance(tree, FieldAccess):
        return [*tree.names[:1], *_mentioned_fields(tree.start)]
    if isinstance(tree, FunctionCall):
        if tree.name not in FUNCTIONS:
            raise TemplateError(f'function "{tree.name}" not defined')
        return _mentioned_fields(tree.arguments)
    if isinstance(tree, Pipeline):
        return _mentioned_fields(tree.commands)
    if isinstance(tree, Block):
        return _mentioned_fields((tree.pipeline, tree.body, tree.otherwise))
    return []


class _Execution:
    """One execution of a template. The cursor is the value of `.`, which `with` and `range` change.

    Args:
        data: the value of `$`, and of the cursor at first.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._variables: dict[str, Any] = {"$": data}

    def run(self, nodes: Sequence[Node]) -> str:
        """The text of the nodes. Raises TemplateError."""
        return self._render(nodes, self._data)

    def _render(self, nodes: Sequence[Node], cursor: Any) -> str:
        """The text of nodes with that cursor. Raises TemplateError, also if it is too long."""
        output = "".join(self._node(node, cursor) for node in nodes)
        if len(output) > OUTPUT_MAX_CHARACTERS:
            raise TemplateError(f"the output is longer than {OUTPUT_MAX_CHARACTERS} characters")
        return output

    def _node(self, node: Node, cursor: Any) -> str:
        """The text of a node; an assignment has none."""
        if isinstance(node, str):
            return node
        if isinstance(node, Block):
            return self._range(node, cursor) if node.keyword == "range" else self._conditional(node, cursor)
        value = self._value(node, cursor)
        return "" if node.variables else functions.shown(value)

    def _conditional(self, block: Block, cursor: Any) -> str:
        """The text of `if` or `with`; variables declared inside end with it."""
        outer = dict(self._variables)
        value = self._value(block.pipeline, cursor)
        inner_cursor = value if block.keyword == "with" else cursor
        is_true = functions.is_true(value)
        output = self._render(block.body, inner_cursor) if is_true else self._render(block.otherwise, cursor)
        self._drop_inner_variables(outer)
        return output

    def _range(self, block: Block, cursor: Any) -> str:
        """The text of `range`, over the elements of a list, or over the values of a map in the order of its keys."""
        values = self._evaluate(block.pipeline.commands, cursor)
        if isinstance(values, Mapping):
            pairs = [(key, values[key]) for key in sorted(values)]
        elif isinstance(values, Sequence) and not isinstance(values, str):
            pairs = list(enumerate(values))
        else:
            raise TemplateError(f"range can't iterate over {functions.shown(values)}")
        if not pairs:
            return self._render(block.otherwise, cursor)
        outer, parts = dict(self._variables), []
        variable_names = block.pipeline.variables
        for key, element in pairs:
            variable_values = (key, element) if len(variable_names) > 1 else (element,)
            self._variables.update(zip(variable_names, variable_values, strict=False))  # there may be no variable
            parts.append(self._render(block.body, element))
        self._drop_inner_variables(outer)
        return "".join(parts)

    def _drop_inner_variables(self, outer: Mapping[str, Any]) -> None:
        """Drop the variables that the block declared, at its end; `outer` are those before it."""
        self._variables = {name: variable for name, variable in self._variables.items() if name in outer}

    def _value(self, pipeline: Pipeline, cursor: Any) -> Any:
        """The value of a pipeline, which may declare or assign a variable."""
        value = self._evaluate(pipeline.commands, cursor)
        for name in pipeline.variables[:1]:  # only `range` may have two, and does not come here
            if not pipeline.declares and name not in self._variables:
                raise TemplateError(f'undefined variable "{name}"')
            self._variables[name] = value
        return value

    def _evaluate(self, commands: Sequence[Operand], cursor: Any) -> Any:
        """The value of commands, each of which gets that of the one before as its last argument."""
        first_command, *later_commands = commands
        value = self._operand(first_command, cursor)
        for command in later_commands:
            assert isinstance(command, FunctionCall)
            value = self._call_function(command, cursor, value)
        return value

    def _operand(self, operand: Operand, cursor: Any) -> Any:
        """The value of an operand. Raises TemplateError for an undefined variable or field."""
        match operand:
            case TemplateConstant(value):
                return value
            case TemplateVariable(name):
                if name not in self._variables:
                    raise TemplateError(f'undefined variable "{name}"')
                return self._variables[name]
            case FunctionCall():
                return self._call_function(operand, cursor)
            case Pipeline():
                return self._value(operand, cursor)
            case FieldAccess(start, names):
                value = cursor if start is None else self._operand(start, cursor)
                for name in names:
                    value = _field(value, name)
                return value

    def _call_function(self, call: FunctionCall, cursor: Any, *piped_value: Any) -> Any:
        """The result of a function; `piped_value` is that of the command before, if there is one.

        Raises TemplateError.
        """
        arguments = [*(self._operand(argument, cursor) for argument in call.arguments), *piped_value]
        try:
            return FUNCTIONS[call.name](*arguments)
        except (TypeError, IndexError) as error:
            raise TemplateError(f"wrong number or type of arguments for {call.name}") from error


def _field(value: Any, name: str) -> Any:
    """The field of a mapping. Raises TemplateError."""
    if not isinstance(value, Mapping) or name not in value:
        raise TemplateError(f"can't evaluate field {name}")
    return value[name]
