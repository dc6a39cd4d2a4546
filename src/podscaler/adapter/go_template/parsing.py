"""Parses a template into a tree of nodes.

Called by `go_template.template`, which executes the tree. `sum(<<.Series>>)` becomes `("sum(", Pipeline((FieldAccess(
None, ("Series",)),)), ")")`. Definitions, blocks and calls of other templates are not supported: a rule has one
template. A new kind of node: a class, a member of Node or Operand, and its execution in `template`.

Source: documentation of Go's package text/template (actions, pipelines, variables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.adapter.go_template.lexing import Piece, TemplateError, TemplateToken, split

_CONSTANTS = {"true": True, "false": False, "nil": None}
_BLOCKS = frozenset({"if", "range", "with"})
_UNSUPPORTED = frozenset({"define", "template", "block", "break", "continue"})


@dataclass(frozen=True, slots=True)
class TemplateConstant:
    """A literal: a text, an integer, true, false or nil."""

    value: str | int | bool | None


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """Fields of a value, from left to right.

    Attributes:
        start: the value whose fields are read; None: the cursor (`.`).
        names: the names of the fields; empty: the value itself.
    """

    start: TemplateVariable | Pipeline | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A variable with its dollar sign; `$` is the data of the template."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function."""

    name: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands whose results are passed on as the last argument of the next.

    Attributes:
        commands: the commands, at least one.
        variables: the variables that the result is assigned to; with `range` up to two.
        declares: whether the variables are new (`:=`).
    """

    commands: tuple[Operand | FunctionCall, ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


Operand = TemplateConstant | FieldAccess | TemplateVariable | Pipeline | FunctionCall


@dataclass(frozen=True, slots=True)
class Block:
    """An `if`, `range` or `with`; `otherwise` are the nodes behind `else`, of `else if` a single Block."""

    keyword: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node = str | Pipeline | Block


def parse(template_text: str) -> tuple[Node, ...]:
    """The nodes of a template. Raises TemplateError."""
    parser = _Parser(split(template_text))
    nodes, end = parser.nodes()
    if end is not None:
        raise TemplateError(f"unexpected {end[0].text}")
    return nodes


class _Parser:
    """Parses the pieces of a template in their order."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = list(reversed(pieces))  # the next one is the last

    def nodes(self) -> tuple[tuple[Node, ...], tuple[TemplateToken, ...] | None]:
        """The nodes up to `else` or `end`, and that action; None at the end of the template. Raises TemplateError."""
        nodes: list[Node] = []
        while self._pieces:
            piece = self._pieces.pop()
            if isinstance(piece, str):
                nodes.append(piece)
                continue
            if not piece:
                raise TemplateError("missing value for command")
            word = piece[0].text if piece[0].kind == "word" else ""
            if word in ("else", "end"):
                return tuple(nodes), piece
            if word in _UNSUPPORTED:
                raise TemplateError(f"{word} is not supported in a rule")
            nodes.append(self._block(word, piece[1:]) if word in _BLOCKS else _pipeline(piece))
        return tuple(nodes), None

    def _block(self, keyword: str, tokens: tuple[TemplateToken, ...]) -> Block:
        """The block whose first action has these tokens behind its keyword. Raises TemplateError."""
        pipeline = _pipeline(tokens)
        body, end = self.nodes()
        if end is None:
            raise TemplateError(f"{keyword} without end")
        if end[0].text == "end":
            return Block(keyword, pipeline, body, ())
        if len(end) > 1:
            nested_keyword = end[1].text
            if nested_keyword not in ("if", "with"):
                raise TemplateError(f"unexpected {nested_keyword} behind else")
            return Block(keyword, pipeline, body, (self._block(nested_keyword, end[2:]),))
        otherwise, end_action = self.nodes()
        if end_action is None or end_action[0].text != "end":
            raise TemplateError(f"{keyword} without end")
        return Block(keyword, pipeline, body, otherwise)


def _pipeline(tokens: tuple[TemplateToken, ...]) -> Pipeline:
    """The pipeline of these tokens. Raises TemplateError."""
    reader = _TokenReader(tokens)
    pipeline = reader.pipeline()
    if reader.next is not None:
        raise TemplateError(f"unexpected {reader.next.text}")
    return pipeline


class _TokenReader:
    """Parses the tokens of one action."""

    def __init__(self, tokens: Sequence[TemplateToken]) -> None:
        self._tokens = list(reversed(tokens))  # the next one is the last

    @property
    def next(self) -> TemplateToken | None:
        """The next token; None at the end."""
        return self._tokens[-1] if self._tokens else None

    def _take_mark(self, mark: str) -> bool:
        """Take the next token if it is that mark; returns whether it is."""
        if self.next == TemplateToken("mark", mark):
            self._tokens.pop()
            return True
        return False

    def pipeline(self) -> Pipeline:
        """Variables, then commands. Raises TemplateError."""
        variables, declares = self._variables()
        commands = [self._command()]
        while self._take_mark("|"):
            commands.append(self._command())
            if not isinstance(commands[-1], FunctionCall):
                raise TemplateError("a command behind | is not a function")
        return Pipeline(tuple(commands), variables, declares)

    def _variables(self) -> tuple[tuple[str, ...], bool]:
        """The variables before `:=` or `=`, and whether it is `:=`; no token is taken where there is neither."""
        tokens_before = list(self._tokens)
        names: list[str] = []
        while self.next is not None and self.next.kind == "variable":
            names.append(self._tokens.pop().text)
            if self._take_mark(":="):
                return tuple(names), True
            if self._take_mark("="):
                return tuple(names), False
            if not self._take_mark(","):
                break
        self._tokens = tokens_before
        return (), False

    def _command(self) -> Operand:
        """An operand, or a function with its arguments. Raises TemplateError."""
        operand = self._operand()
        arguments: list[Operand] = []
        while self.next is not None and not (self.next.kind == "mark" and self.next.text in "|)"):
            arguments.append(self._operand())
        if isinstance(operand, FunctionCall):
            return FunctionCall(operand.name, tuple(arguments))
        if arguments:
            raise TemplateError("a value that is not a function has arguments")
        return operand

    def _operand(self) -> Operand:
        """The next operand: a constant, field, variable, function or pipeline in parentheses. Raises TemplateError."""
        token = self._tokens.pop() if self._tokens else None
        if token is None:
            raise TemplateError("missing value for command")
        if token.kind == "string":
            return TemplateConstant(token.text)
        if token.kind == "number":
            return TemplateConstant(int(token.text))
        if token.kind == "field":
            return FieldAccess(None, _field_names(token))
        if token.kind == "variable":
            return self._with_fields(TemplateVariable(token.text))
        if token.kind == "word":
            is_constant = token.text in _CONSTANTS
            return TemplateConstant(_CONSTANTS[token.text]) if is_constant else FunctionCall(token.text, ())
        if token.text == ".":
            return FieldAccess(None)
        if token.text != "(":
            raise TemplateError(f"unexpected {token.text} in operand")
        inner = self.pipeline()
        if not self._take_mark(")"):
            raise TemplateError("unclosed left paren")
        return self._with_fields(inner)

    def _with_fields(self, start: TemplateVariable | Pipeline) -> Operand:
        """The operand `start`, or, if field names follow (`.Labels.job`), the access to that field of it."""
        if self.next is not None and self.next.kind == "field":
            return FieldAccess(start, _field_names(self._tokens.pop()))
        return start


def _field_names(token: TemplateToken) -> tuple[str, ...]:
    """The names in a token such as `.Labels.job`."""
    return tuple(token.text[1:].split("."))
