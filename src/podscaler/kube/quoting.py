"""Text escaped as Go does it: `%q`, query parameters and path segments.

Everything that builds URLs or messages from what others wrote calls it.

Source: the documentation of Go's packages strconv (Quote) and net/url (QueryEscape, PathEscape of a whole path).
"""

from collections.abc import Iterable
from urllib.parse import quote as percent_encoded
from urllib.parse import quote_plus

SHORT_ESCAPES = {
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
PATH_SAFE = "$&+,/:;=@"


def quote(text: str) -> str:
    """`text` as Go prints it with `%q`: in double quotes, unprintable characters escaped."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def query(parameters: Iterable[tuple[str, str]]) -> str:
    """The encoded query: in alphabetical order of names, space as `+`; parameters with an empty value are left out."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(parameters) if value)


def path(*segments: str) -> str:
    """An absolute path of `segments`, each escaped (a star becomes `%2A`); empty segments are left out."""
    return "".join(f"/{percent_encoded(segment, safe=PATH_SAFE)}" for segment in segments if segment)


def _escaped(character: str) -> str:
    if character in SHORT_ESCAPES:
        return SHORT_ESCAPES[character]
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
