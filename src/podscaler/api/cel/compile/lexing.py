"""Splits the text of a CEL expression into tokens.

    tokenize("a + 1u")      [Token("IDENT", "a", 0), Token("+", "+", 2), Token("LITERAL", "1u", 4, Uint(1)), EOF], []

Called by `parsing`. A new operator is added to `_TOKEN`, and to a rule of `parsing`. Characters that begin no token are
skipped and reported with ANTLR's message, as cel-go does.

Source: the lexical grammar of the CEL specification.
"""

import re
from dataclasses import dataclass
from typing import Any

from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.numbers import Uint

EOF = "<EOF>"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: IDENT, QUOTED (a member in backticks), LITERAL, or the text itself for operators and `in`; EOF at the end.
        text: as written; of QUOTED without the backticks.
        offset: of its first character in the expression.
        value: of a LITERAL, a Python value; None for other kinds, and for a malformed literal.
    """

    kind: str
    text: str
    offset: int
    value: Any = None


_ESCAPED = r"""\\(?:[abfnrtv\\?"'`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
# a text in three quotes on each side, which may have line breaks, and one in one quote on each side
_TRIPLE_QUOTED = "|".join(f"{quote}(?:{_ESCAPED}|[^\\\\])*?{quote}" for quote in ("'{3}", '"{3}'))
_SINGLE_QUOTED = "|".join(f"{quote}(?:{_ESCAPED}|[^\\\\\n\r{quote}])*{quote}" for quote in "'\"")
_NUMBER = r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+[uU]?|\d+[uU]?"
_TOKEN = re.compile(  # any token but a raw string; the named group that matched is its class
    r"(?P<space>[\t\n\f\r ]+|//[^\n]*)"
    rf"|(?P<string>[bB]?(?:{_TRIPLE_QUOTED}|{_SINGLE_QUOTED}))"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<operator>==|!=|<=|>=|&&|\|\||[-+*/%!<>\[\]{}().,?:])",
    re.DOTALL,
)
_UNTERMINATED_STRING = re.compile(f"[\"'](?:{_ESCAPED}|[^\\\\\n\r\"'])*")
_RAW_STRING = re.compile(
    r"""(?P<string>[bB]?[rR][bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n\r]*'|"[^"\n\r]*"))""", re.DOTALL
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(
    r"""\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))""", re.DOTALL
)
r"""The groups: the digits after `\x`, `\X`, `\u`, `\U`, those of an octal escape, or any other character."""
_CONTROL_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ESCAPED_AS_THEMSELVES = frozenset("\\?\"'`")
INT64_TOO_LARGE = 2**63
"""The one number that is an int only after a minus sign; `parsing` reports it elsewhere."""

_UINT64_END = 2**64
"""The least number beyond uint64."""

_TOO_MANY_DIGITS = 100
"""Numbers of that many digits are not parsed: they are too large in any case, and parsing them may take long."""


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens of an expression, the last of which is EOF, and the lexical errors."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    offset = 0
    while offset < len(source):
        match = _RAW_STRING.match(source, offset) or _TOKEN.match(source, offset)
        if match is None:
            end = _end_of_error(source, offset)
            snippet = _escape_line_breaks(source[offset:end])
            issues.append(Issue(offset, f"Syntax error: token recognition error at: '{snippet}'"))
            offset = end
            continue
        if match.lastgroup != "space":
            tokens.append(_make_token(match, issues))
        offset = match.end()
    return [*tokens, Token(EOF, EOF, len(source))], issues


def _end_of_error(source: str, offset: int) -> int:
    """The end of an invalid token: an unterminated text is one up to its first invalid character."""
    string_start = _UNTERMINATED_STRING.match(source, offset)
    if string_start is not None:
        end = string_start.end()
        ends_in_escape = source[end : end + 1] == "\\"
        return min(end + 2 if ends_in_escape else end, len(source))
    begins_operator = source[offset] in "&|="  # of two characters, such as `&&`
    return min(offset + 2 if begins_operator else offset + 1, len(source))


def _escape_line_breaks(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _make_token(match: re.Match[str], issues: list[Issue]) -> Token:
    """The token of a match of the lexer's pattern; a literal that is not valid is reported and has the value None."""
    lexeme, offset = match.group(), match.start()
    if match.lastgroup == "operator":
        return Token(lexeme, lexeme, offset)
    if match.lastgroup == "quoted":
        return Token("QUOTED", lexeme[1:-1], offset)
    if match.lastgroup == "name":
        if lexeme in _CONSTANTS:
            return Token("LITERAL", lexeme, offset, _CONSTANTS[lexeme])
        return Token("in" if lexeme == "in" else "IDENT", lexeme, offset)
    try:
        value = _parse_number(lexeme) if match.lastgroup == "number" else _parse_string(lexeme)
    except ValueError as error:
        issues.append(Issue(offset, str(error)))
        value = None
    return Token("LITERAL", lexeme, offset, value)


def _parse_number(number_text: str) -> Any:
    """The value of `1`, `0x1f`, `2u` or `1.5e3`. Raises ValueError beyond uint64 (with `u`) and INT64_TOO_LARGE."""
    is_unsigned = number_text[-1] in "uU"
    digits = number_text[:-1] if is_unsigned else number_text
    if not digits.startswith("0x") and any(mark in digits for mark in ".eE"):
        return float(digits)
    base = 16 if digits.startswith("0x") else 10
    number = int(digits, base) if len(digits) < _TOO_MANY_DIGITS else _UINT64_END
    if is_unsigned:
        if number >= _UINT64_END:
            raise ValueError("invalid uint literal")
        return Uint(number)
    if number > INT64_TOO_LARGE:
        raise ValueError("invalid int literal")
    return number


def _parse_string(literal_text: str) -> str | bytes:
    """The value of a literal with its prefix (`r`, `b`) and its one or three quotes on each side. Raises ValueError."""
    quoted_text = literal_text.lstrip("bBrR")
    prefix = literal_text.removesuffix(quoted_text).lower()
    is_triple_quoted = quoted_text[:3] in ("'''", '"""') and len(quoted_text) >= 6
    quote_width = 3 if is_triple_quoted else 1
    body = quoted_text[quote_width:-quote_width].replace("\r\n", "\n").replace("\r", "\n")
    if "r" in prefix:
        return body.encode() if "b" in prefix else body
    return _parse_bytes(body) if "b" in prefix else _ESCAPE.sub(_unescape_character, body)


def _unescape_character(match: re.Match[str]) -> str:
    """The character of an escape sequence. Raises ValueError for a surrogate, and beyond Unicode."""
    code = _code_of_escape(match)
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise ValueError(f"invalid unicode code point in: {match.group()}")
    return chr(code)


def _code_of_escape(match: re.Match[str]) -> int:
    """The number of the character or byte that an escape sequence stands for. Raises ValueError for an unknown one."""
    *hexadecimal, octal, simple = match.groups()
    for digits in hexadecimal:
        if digits:
            return int(digits, 16)
    if octal:
        return int(octal, 8)
    if simple in _CONTROL_ESCAPES:
        return _CONTROL_ESCAPES[simple]
    if simple in _ESCAPED_AS_THEMSELVES:
        return ord(simple)
    raise ValueError(f"Syntax error: token recognition error at: '{match.group()}'")


def _parse_bytes(body: str) -> bytes:
    r"""The bytes of a bytes literal: `\u` escapes are encoded as UTF-8, `\x` and octal escapes are one byte."""
    encoded = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        encoded += body[position : match.start()].encode()
        code = _code_of_escape(match)
        is_code_point = match.group(3) or match.group(4)  # \u or \U
        encoded += chr(code).encode() if is_code_point else bytes([code])
        position = match.end()
    return bytes(encoded + body[position:].encode())
