"""Quotes texts with Go's escapes, as `%q` prints names and values in messages: `quoted('a"b')` is `"a\\"b"`.

Called wherever a message quotes a text of a client. Source: the documentation of Go's package strconv (Quote).
"""

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_ASCII_MAX = 0x7F
_BASIC_PLANE_MAX = 0xFFFF


def quoted(text: str) -> str:
    """`text` in quotes; printable characters stay, others are escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    """A character as `%q` prints it inside the quotes."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= _ASCII_MAX:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _BASIC_PLANE_MAX else f"\\U{code:08x}"
