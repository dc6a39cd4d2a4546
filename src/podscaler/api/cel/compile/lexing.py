"""Splits the text of a CEL expression into tokens.

    tokens("a + 1u")      [Token("IDENT", "a", 0), Token("+", "+", 2), Token("LITERAL", "1u", 4, Uint(1)), EOF], []

Called by `parsing`. Characters that begin no token are skipped and reported with ANTLR's message, as cel-go does.

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
_LONG = "|".join(f"{quote}(?:{_ESCAPED}|[^\\\\])*?{quote}" for quote in ("'{3}", '"{3}'))
_SHORT = "|".join(f"{quote}(?:{_ESCAPED}|[^\\\\\n\r{quote}])*{quote}" for quote in "'\"")
_NUMBER = r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+[uU]?|\d+[uU]?"
_TOKENS = re.compile(  # any token but a raw string; the named group that matched is its class
    r"(?P<space>[\t\n\f\r ]+|//[^\n]*)"
    rf"|(?P<string>[bB]?(?:{_LONG}|{_SHORT}))"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<operator>==|!=|<=|>=|&&|\|\||[-+*/%!<>\[\]{}().,?:])",
    re.DOTALL,
)
_UNTERMINATED = re.compile(f"[\"'](?:{_ESCAPED}|[^\\\\\n\r\"'])*")
_RAW = re.compile(r"""(?P<string>[bB]?[rR][bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n\r]*'|"[^"\n\r]*"))""", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(
    r"""\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))""", re.DOTALL
)
_CONTROL_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ESCAPED_AS_THEMSELVES = frozenset("\\?\"'`")
INT64_TOO_LARGE = 2**63
"""The one number that is an int only after a minus sign; the parser reports it elsewhere."""

_UINT64_MAX = 2**64


def tokens(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens of an expression, the last of which is EOF, and the lexical errors."""
    tokens_found: list[Token] = []
    issues: list[Issue] = []
    offset = 0
    while offset < len(source):
        match = _RAW.match(source, offset) or _TOKENS.match(source, offset)
        if match is None:
            end = _end_of_error(source, offset)
            snippet = _one_line(source[offset:end])
            issues.append(Issue(offset, f"Syntax error: token recognition error at: '{snippet}'"))
            offset = end
            continue
        if match.lastgroup != "space":
            tokens_found.append(_token(match, issues))
        offset = match.end()
    return [*tokens_found, Token(EOF, EOF, len(source))], issues


def _end_of_error(source: str, offset: int) -> int:
    """The end of an invalid token: an unterminated text is one up to its first invalid character."""
    text = _UNTERMINATED.match(source, offset)
    if text is not None:
        return min(text.end() + (2 if source[text.end() : text.end() + 1] == "\\" else 0), len(source))
    return min(offset + (2 if source[offset] in "&|=" else 1), len(source))


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _token(match: re.Match[str], issues: list[Issue]) -> Token:
    """The token of a match of the lexer's pattern; a literal that is not valid is reported and has the value None."""
    text, offset = match.group(), match.start()
    if match.lastgroup == "operator":
        return Token(text, text, offset)
    if match.lastgroup == "quoted":
        return Token("QUOTED", text[1:-1], offset)
    if match.lastgroup == "name":
        if text in _CONSTANTS:
            return Token("LITERAL", text, offset, _CONSTANTS[text])
        return Token("in" if text == "in" else "IDENT", text, offset)
    try:
        value = _number(text) if match.lastgroup == "number" else _text(text)
    except ValueError as error:
        issues.append(Issue(offset, str(error)))
        value = None
    return Token("LITERAL", text, offset, value)


def _number(text: str) -> Any:
    """The value of `1`, `0x1f`, `2u` or `1.5e3`. Integers of 100 digits or more are only known to be too large."""
    is_unsigned = text[-1] in "uU"
    digits = text[:-1] if is_unsigned else text
    if not digits.startswith("0x") and any(mark in digits for mark in ".eE"):
        return float(digits)
    number = int(digits, 16 if digits.startswith("0x") else 10) if len(digits) < 100 else _UINT64_MAX
    if is_unsigned:
        if number >= _UINT64_MAX:
            raise ValueError("invalid uint literal")
        return Uint(number)
    if number > INT64_TOO_LARGE:
        raise ValueError("invalid int literal")
    return number


def _text(text: str) -> str | bytes:
    """The value of a quoted literal, with its prefix (`r`, `b`) and its quotes, one or three on each side."""
    quote = re.search("['\"]", text)
    begin = quote.start() if quote else 0
    prefix = text[:begin].lower()
    width = 3 if text[begin : begin + 3] in ("'''", '"""') and len(text) >= begin + 6 else 1
    body = text[begin + width : len(text) - width].replace("\r\n", "\n").replace("\r", "\n")
    if "r" in prefix:
        return body.encode() if "b" in prefix else body
    return _bytes(body) if "b" in prefix else _ESCAPE.sub(_character, body)


def _character(match: re.Match[str]) -> str:
    code = _code(match)
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise ValueError(f"invalid unicode code point in: {match.group()}")
    return chr(code)


def _code(match: re.Match[str]) -> int:
    """The number of the character or byte that an escape sequence stands for."""
    for digits in match.groups()[:4]:
        if digits:
            return int(digits, 16)
    octal, simple = match.group(5), match.group(6)
    if octal:
        return int(octal, 8)
    if simple in _CONTROL_ESCAPES:
        return _CONTROL_ESCAPES[simple]
    if simple in _ESCAPED_AS_THEMSELVES:
        return ord(simple)
    raise ValueError(f"Syntax error: token recognition error at: '{match.group()}'")


def _bytes(body: str) -> bytes:
    r"""The bytes of a bytes literal: `\u` escapes are encoded as UTF-8, `\x` and octal escapes are one byte."""
    data = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        data += body[position : match.start()].encode()
        code = _code(match)
        data += chr(code).encode() if match.group(3) or match.group(4) else bytes([code])
        position = match.end()
    return bytes(data + body[position:].encode())
