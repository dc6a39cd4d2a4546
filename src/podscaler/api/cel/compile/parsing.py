"""Parses CEL expressions to syntax trees, by recursive descent.

    parse("1 + a")      Call(2, "_+_", (Literal(0, 1), Ident(4, "a")))

Called by `programs`. A rule of the grammar is a method of `_Parser`; a new operator is added to a set such as
`_RELATION_OPERATORS`. Parsing continues after a missing or extraneous token; any other syntax error ends it.

Source: the grammar of the CEL specification, with optional fields and elements; ANTLR's messages as cel-go shows them.
Differs: cel-go continues after every syntax error and may report more; expressions nest at most DEPTH_MAX deep, in
cel-go 250.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from podscaler.api.cel.compile import lexing, macros
from podscaler.api.cel.compile.checking import KEYWORDS
from podscaler.api.cel.compile.lexing import EOF, Token
from podscaler.api.cel.values.issues import NOWHERE, CompileError, Issue, render_issues
from podscaler.api.cel.values.syntax_tree import Call, Ident, ListLiteral, Literal, MapEntry, MapLiteral, Node, Select

DEPTH_MAX = 60
"""The deepest nesting of parentheses and operators: the parser and later phases recurse on Python's stack."""

_CHAIN_MAX = 2 * DEPTH_MAX
"""The longest chain of operators or members: later phases recurse into it, with fewer frames than the parser needs."""

_CHARACTERS_MAX = 100_000
TOO_DEEP = "expression recursion limit exceeded: 250"
"""cel-go's message, with its limit; `programs` uses it, too, for trees that exceed Python's stack."""

_RELATION_OPERATORS = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_ADDITIVE_OPERATORS = frozenset({"+", "-"})
_MULTIPLICATIVE_OPERATORS = frozenset({"*", "/", "%"})
_EXPRESSION_STARTS = frozenset({"[", "{", "(", ".", "-", "!", "LITERAL", "IDENT"})
_SYMBOLS_IN_MESSAGES = ("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?")
_LITERALS_IN_MESSAGES = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"


class _SyntaxError(Exception):
    """Parsing cannot continue; the error is among the issues."""


def parse(source: str) -> Node:
    """The tree of an expression. Raises CompileError with all syntax errors."""
    if len(source) > _CHARACTERS_MAX:
        size = f"size: {len(source)}, limit: {_CHARACTERS_MAX}"
        raise CompileError(render_issues(source, [Issue(NOWHERE, f"expression code point size exceeds limit: {size}")]))
    tokens, issues = lexing.tokenize(source)
    parser = _Parser(tokens, issues)
    try:
        tree = parser.whole_expression()
    except _SyntaxError:
        tree = None
    if issues or tree is None:
        raise CompileError(render_issues(source, issues))
    return tree


@dataclass(slots=True)
class _Parser:
    """One method for each rule of the grammar. Methods raise _SyntaxError where parsing cannot continue.

    Attributes:
        tokens: those of the expression; the last one is EOF.
        issues: errors are appended.
        position: the index of the current token.
        depth: of nested `expression` rules.
        heights: by `id` of a node, the length of the chain of operators or members below it.
    """

    tokens: list[Token]
    issues: list[Issue]
    position: int = 0
    depth: int = 0
    heights: dict[int, int] = field(default_factory=dict)

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def whole_expression(self) -> Node:
        """The tree of all tokens; fails if some are left behind the expression."""
        tree = self.expression()
        if self.token.kind != EOF:
            is_last = self.tokens[self.position + 1].kind == EOF  # ANTLR could skip one token, but not several
            head = "extraneous" if is_last else "mismatched"
            raise self._report_error(f"{head} input '{self.token.text}' expecting <EOF>")
        return tree

    def expression(self, also_valid: tuple[str, ...] = ()) -> Node:
        """An expression; `also_valid` are the other tokens that are valid here, for the error message."""
        self._enter_expression()
        if self.token.kind not in _EXPRESSION_STARTS:
            error = self._report_error(self._no_expression_message(also_valid))
            self._take()  # as ANTLR does, skip one extraneous token
            if self.token.kind not in _EXPRESSION_STARTS:
                raise error
        tree = self._or_expression()
        if self.token.kind == "?":
            operator = self._take()
            value_if_true = self._or_expression()
            self._expect(":")
            tree = Call(operator.offset, "_?_:_", (tree, value_if_true, self.expression()))
        self.depth -= 1
        return tree

    def _enter_expression(self) -> None:
        """Count one level of nesting. Raises _SyntaxError beyond DEPTH_MAX."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self.issues.append(Issue(NOWHERE, TOO_DEEP))
            raise _SyntaxError

    def _or_expression(self) -> Node:
        return self._chain("||", self._and_expression)

    def _and_expression(self) -> Node:
        return self._chain("&&", self._relation)

    def _chain(self, operator: str, parse_operand: Callable[[], Node]) -> Node:
        """Operands, with `&&` or `||` (`operator`) between them."""
        terms, offsets = [parse_operand()], []
        while self.token.kind == operator:
            offsets.append(self._take().offset)
            terms.append(parse_operand())
        return _balance(f"_{operator}_", terms, offsets)

    def _relation(self) -> Node:
        return self._binary(_RELATION_OPERATORS, self._additive)

    def _additive(self) -> Node:
        return self._binary(_ADDITIVE_OPERATORS, self._multiplicative)

    def _multiplicative(self) -> Node:
        return self._binary(_MULTIPLICATIVE_OPERATORS, self._unary)

    def _binary(self, operators: frozenset[str], parse_operand: Callable[[], Node]) -> Node:
        """Operands with left-associative operators between them."""
        left = parse_operand()
        while self.token.kind in operators:
            operator = self._take()
            name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            left = self._with_height(Call(operator.offset, name, (left, parse_operand())), left)
        return left

    def _with_height(self, node: Node, operand_node: Node) -> Node:
        """`node`, whose first operand is `operand_node`. Raises _SyntaxError if its chain of operators is too long."""
        self.heights[id(node)] = height = self.heights.pop(id(operand_node), 0) + 1
        if height > _CHAIN_MAX:
            self.issues.append(Issue(NOWHERE, TOO_DEEP))
            raise _SyntaxError
        return node

    def _unary(self) -> Node:
        """`!x` and `-x`: pairs of the same operator cancel out, and `-1` is a literal."""
        kind, count = self.token.kind, 0
        if kind not in ("!", "-"):
            return self._member()
        first_sign = self.token
        while self.token.kind == kind:
            self._take()
            count += 1
        if kind == "-" and _is_number(self.token) and count % 2:
            return self._negative_literal(first_sign)
        operand = self._member()
        return Call(first_sign.offset, f"{kind}_", (operand,)) if count % 2 else operand

    def _negative_literal(self, sign: Token) -> Node:
        number = self._take()
        return self._postfix(Literal(sign.offset, -number.value))

    def _member(self) -> Node:
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        """A node with all member selections, calls and indexes that follow it."""
        while self.token.kind in (".", "["):
            operand_node = node
            node = self._member_selection(node) if self.token.kind == "." else self._index(node)
            self._with_height(node, operand_node)
        return node

    def _member_selection(self, node: Node) -> Node:
        """What follows a dot: `.field`, `.?field` or `.method(...)`."""
        dot = self._take()
        is_optional = self._skip("?")
        name = self._take() if self.token.kind == "QUOTED" else self._expect_member()
        if is_optional:
            return Call(dot.offset, "_?._", (node, Literal(name.offset, name.text)))
        if self.token.kind != "(":
            return Select(dot.offset, node, name.text)
        return self._call(name.text, node)

    def _index(self, node: Node) -> Node:
        """What follows a bracket: `[index]` or `[?index]`."""
        bracket = self._take()
        is_optional = self._skip("?")
        index = self.expression(also_valid=() if is_optional else ("?",))
        self._expect("]")
        return Call(bracket.offset, "_[?_]" if is_optional else "_[_]", (node, index))

    def _call(self, name: str, target: Node | None) -> Node:
        """The call of a function or method, expanded if it is a macro."""
        parenthesis = self._take()
        args = tuple(self._items(")"))
        try:
            expansion = macros.expand(parenthesis.offset, name, target, args)
        except macros.MacroError as error:
            self.issues.append(error.issue)
            return Literal(parenthesis.offset, None)
        return expansion if expansion is not None else Call(parenthesis.offset, name, args, target)

    def _items(self, end: str) -> list[Node]:
        """The expressions up to the closing token, separated by commas."""
        nodes: list[Node] = []
        if not self._skip(end):
            nodes.append(self.expression(also_valid=(end,)))
            while self._skip(","):
                nodes.append(self.expression())
            self._expect(end)
        return nodes

    def _primary(self) -> Node:
        """A literal, a parenthesis, a list, a map or a name."""
        token = self.token
        if token.kind == "LITERAL":
            self._take()
            if type(token.value) is int and token.value == lexing.INT64_TOO_LARGE:
                self.issues.append(Issue(token.offset, "invalid int literal"))
            return Literal(token.offset, token.value)
        if token.kind == "(":
            self._take()
            inner_expression = self.expression()
            self._expect(")")
            return inner_expression
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            return self._map("", token.offset)
        if token.kind in (".", "IDENT"):
            return self._name()
        raise self._report_error(self._no_expression_message(()))

    def _no_expression_message(self, also_valid: tuple[str, ...]) -> str:
        """ANTLR's message about a token that begins no expression; it is extraneous if the next one is valid here."""
        symbols = [
            f"'{symbol}'" for symbol in _SYMBOLS_IN_MESSAGES if symbol in _EXPRESSION_STARTS or symbol in also_valid
        ]
        next_kind = self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind
        is_extra = self.token.kind != EOF and (next_kind in _EXPRESSION_STARTS or next_kind in also_valid)
        head = "extraneous" if is_extra else "mismatched"
        return f"{head} input '{self.token.text}' expecting {{{', '.join(symbols)}, {_LITERALS_IN_MESSAGES}}}"

    def _name(self) -> Node:
        """A variable, a function call, or a message `pkg.Type{...}`; a leading dot means the outermost scope."""
        is_rooted = self._skip(".")
        name = self._expect_name()
        if name.text in KEYWORDS:
            self.issues.append(Issue(name.offset, f"reserved identifier: {name.text}"))
        name_text = f".{name.text}" if is_rooted else name.text
        if self.token.kind == "(":
            return self._call(name_text, None)
        if self.token.kind == "{":
            return self._map(name_text, self.token.offset)
        message = self._message_literal(name_text)
        return message if message is not None else Ident(name.offset, name_text)

    def _message_literal(self, name_text: str) -> Node | None:
        """The message of type `a.B`, at the `.B{}` of `a.B{}`; None, with nothing consumed, where no `{` follows."""
        lookahead = self.position
        while self.tokens[lookahead].kind == "." and self.tokens[lookahead + 1].kind == "IDENT":
            name_text += f".{self.tokens[lookahead + 1].text}"
            lookahead += 2
        if lookahead == self.position or self.tokens[lookahead].kind != "{":
            return None
        self.position = lookahead
        return self._map(name_text, self.token.offset)

    def _list(self) -> Node:
        """A list literal; `?` before an element makes it optional."""
        bracket = self._take()
        elements: list[Node] = []
        optional_indices: set[int] = set()
        while self.token.kind != "]":
            if self._skip("?"):
                optional_indices.add(len(elements))
            elements.append(self.expression(also_valid=() if elements else ("]", ",", "?")))
            if not self._skip(","):
                break
        self._check_end("]")
        self._expect("]")
        return ListLiteral(bracket.offset, tuple(elements), frozenset(optional_indices))

    def _map(self, name: str, offset: int) -> Node:
        """A map literal, or the fields of the message `name`; `?` before a key makes the entry optional."""
        self._take()
        entries: list[MapEntry] = []
        while self.token.kind != "}":
            is_optional = self._skip("?")
            also_valid = () if entries else ("}", ",", "?")
            key = self._field_name() if name else self.expression(also_valid)
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self.expression(), is_optional))
            if not self._skip(","):
                break
        self._check_end("}")
        self._expect("}")
        return MapLiteral(offset, tuple(entries), name)

    def _field_name(self) -> Node:
        name = self._expect_name()
        return Literal(name.offset, name.text)

    def _take(self) -> Token:
        """Consume the current token, unless it is EOF, and return it."""
        token = self.token
        if token.kind != EOF:
            self.position += 1
        return token

    def _skip(self, kind: str) -> bool:
        """Consume the current token if it is of that kind, and return whether it was."""
        if self.token.kind != kind:
            return False
        self.position += 1
        return True

    def _check_end(self, end: str) -> None:
        """Raise _SyntaxError unless the current token closes the list or map, after an element without a comma."""
        if self.token.kind != end:
            raise self._report_error(f"mismatched input '{self.token.text}' expecting {{'{end}', ','}}")

    def _expect(self, kind: str) -> Token:
        """The token `kind`; as ANTLR does, an extraneous token is skipped and a missing one inserted, with an issue."""
        token = self.token
        if token.kind == kind:
            return self._take()
        next_kind = self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind
        if next_kind == kind:
            self._report_error(f"extraneous input '{token.text}' expecting '{kind}'")
            self._take()
            return self._take()
        begins_expression = token.kind in _EXPRESSION_STARTS
        is_missing = begins_expression if kind == ":" else not begins_expression  # only a colon precedes an expression
        if is_missing:
            self._report_error(f"missing '{kind}' at '{token.text}'")
            return token
        raise self._report_error(f"mismatched input '{token.text}' expecting '{kind}'")

    def _expect_name(self) -> Token:
        if self.token.kind == "IDENT":
            return self._take()
        raise self._report_error(f"mismatched input '{self.token.text}' expecting IDENTIFIER")

    def _expect_member(self) -> Token:
        """Consume the name after a dot. Raises _SyntaxError if another token follows."""
        if self.token.kind == "IDENT":
            return self._take()
        found_text = "" if self.token.kind == EOF else self.token.text
        raise self._report_error(f"no viable alternative at input '.{found_text}'")

    def _report_error(self, message: str) -> _SyntaxError:
        """Report a syntax error at the current token; returns what the caller raises where parsing cannot continue."""
        self.issues.append(Issue(self.token.offset, f"Syntax error: {message}"))
        return _SyntaxError()


def _is_number(token: Token) -> bool:
    return token.kind == "LITERAL" and type(token.value) in (int, float)


def _balance(name: str, terms: list[Node], offsets: list[int]) -> Node:
    """A chain of `&&` or `||` as a balanced tree, with the offsets of cel-go's parser."""
    if not offsets:
        return terms[0]
    middle = len(offsets) // 2
    left = _balance(name, terms[: middle + 1], offsets[:middle])
    right = _balance(name, terms[middle + 1 :], offsets[middle + 1 :])
    return Call(offsets[middle], name, (left, right))
