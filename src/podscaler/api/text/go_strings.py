"""Reads Go's string literals, which PromQL and Go templates share.

Called by the adapter's template and PromQL lexers.

Source: documentation of Go's package strconv (Unquote).
"""

import re

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))", re.DOTALL
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unquote(literal: str) -> str:
    """The value of a literal in double or single quotes or in backquotes. Raises ValueError for an invalid escape."""
    if literal[:1] == "`":
        return literal[1:-1].replace("\r", "")
    return _ESCAPE.sub(_replace, literal[1:-1])


def _replace(escape: re.Match[str]) -> str:
    """The character of an escape sequence. Raises ValueError for an invalid one."""
    simple, byte, short, long, octal, invalid = escape.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if invalid is not None:
        raise ValueError(f"invalid escape {escape[0]} in a string")
    code = int(octal, 8) if octal is not None else int(byte or short or long, 16)
    if code > 0x10FFFF:
        raise ValueError(f"invalid escape {escape[0]} in a string")
    return chr(code)
