"""Reads Go's string literals, which PromQL and Go templates share.

Called by `podscaler.adapter.promql.lexing` and `podscaler.adapter.go_template.lexing`.

Source: documentation of Go's package strconv (Unquote).
"""

import re

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))", re.DOTALL
)
_CODE_POINT_MAX = 0x10FFFF
_CONTROL_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unquote(literal: str) -> str:
    """The value of a literal in double or single quotes or in backquotes. Raises ValueError for an invalid escape."""
    if literal[:1] == "`":
        return literal[1:-1].replace("\r", "")
    return _ESCAPE.sub(_unescape, literal[1:-1])


def _unescape(escape: re.Match[str]) -> str:
    """The character of an escape sequence. Raises ValueError for an invalid one."""
    letter, hex_byte, short_unicode, long_unicode, octal, invalid = escape.groups()
    if letter is not None:
        return _CONTROL_CHARACTERS.get(letter, letter)
    if invalid is not None:
        raise ValueError(f"invalid escape {escape[0]} in a string")
    code = int(octal, 8) if octal is not None else int(hex_byte or short_unicode or long_unicode, 16)
    if code > _CODE_POINT_MAX:
        raise ValueError(f"invalid escape {escape[0]} in a string")
    return chr(code)
