"""Finds the first syntax error of a text that is not JSON, with the message of Go's encoding/json.

    find_error(b'{"a" 1}')      "invalid character '1' after object key"

Called by `json_text` for bodies that the fast parser rejects, which has other messages.

Theory of operation: a scanner reads the text once, without recursion, in linear time. The attribute `expect_next` is
the method for the next token; it consumes the token and sets `expect_next` for the following one. The scanner reads
bytes, as Go does: one outside ASCII is shown as its Latin-1 character.

Source: the behaviour of Go's encoding/json scanner (golden errors.jsonl, create-hpa.jsonl).
"""

import re

END = "unexpected end of JSON input"

_STRING_CONTENT = re.compile(rb'[^"\\\x00-\x1f]*')
_SPACE = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_HEX = b"0123456789abcdefABCDEF"
_KEY_EXPECTED = "looking for beginning of object key string"


class _ScanError(Exception):
    """The scanner found a syntax error; str() is the message."""


def find_error(text: bytes) -> str:
    """The message about the first syntax error; `invalid JSON` for valid JSON, which no caller passes."""
    try:
        _Scanner(text).to_end()
    except _ScanError as error:
        return str(error)
    return "invalid JSON"


class _Scanner:
    """Reads a text; raises _ScanError at the first syntax error.

    Attributes:
        position: the index of the next byte.
        open_brackets: the `{` and `[` around the position, outermost first.
        expect_next: the method that reads the next token.
    """

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.position = 0
        self.open_brackets: list[bytes] = []
        self.expect_next = self.value

    def to_end(self) -> None:
        """Scan the whole text: a value, with nothing but space after it."""
        while True:
            self.skip(_SPACE)
            if not self.open_brackets and self.expect_next == self.after_value:
                break
            self.expect_next()
        if self.position < len(self.text):
            raise self.unexpected("after top-level value")

    def value(self) -> None:
        """Scan a literal, or the bracket that opens an object or an array."""
        first = self.peek()
        if first in (b"{", b"["):
            self.position += 1
            self.open_brackets.append(first)
            self.expect_next = self.first_key if first == b"{" else self.first_item
            return
        if first == b'"':
            self.string()
        elif first in _LITERALS:
            self.word(_LITERALS[first])
        elif first == b"-" or first.isdigit():
            self.number()
        else:
            raise self.unexpected("looking for beginning of value")
        self.expect_next = self.after_value

    def first_item(self) -> None:
        if self.peek() == b"]":
            self.close()
        else:
            self.expect_next = self.value

    def first_key(self) -> None:
        if self.peek() == b"}":
            self.close()
        else:
            self.key()

    def key(self) -> None:
        if self.peek() != b'"':
            raise self.unexpected(_KEY_EXPECTED)
        self.string()
        self.expect_next = self.colon

    def colon(self) -> None:
        if self.peek() != b":":
            raise self.unexpected("after object key")
        self.position += 1
        self.expect_next = self.value

    def after_value(self) -> None:
        """Scan what follows a value in an object or array: a comma or the closing bracket."""
        in_object = self.open_brackets[-1] == b"{"
        following = self.peek()
        if following == b",":
            self.position += 1
            self.expect_next = self.key if in_object else self.value
        elif following == (b"}" if in_object else b"]"):
            self.close()
        else:
            raise self.unexpected("after object key:value pair" if in_object else "after array element")

    def close(self) -> None:
        self.position += 1
        self.open_brackets.pop()
        self.expect_next = self.after_value

    def string(self) -> None:
        """Scan a string from its first quote to its last."""
        self.position += 1
        while True:
            self.skip(_STRING_CONTENT)
            following = self.peek()
            if following == b"\\":
                self.escape()
            elif following == b'"':
                self.position += 1
                return
            else:
                raise self.unexpected("in string literal")

    def escape(self) -> None:
        """Scan an escape sequence from its backslash; `u` has four hexadecimal digits."""
        self.position += 1
        code = self.peek()
        if code not in b'"\\/bfnrtu':
            raise self.unexpected("in string escape code")
        self.position += 1
        for _ in range(4 if code == b"u" else 0):
            if self.peek() not in _HEX:
                raise self.unexpected("in \\u hexadecimal character escape")
            self.position += 1

    def word(self, word: bytes) -> None:
        for index in range(len(word)):
            expected = word[index : index + 1]
            if self.peek() != expected:
                raise self.unexpected(f"in literal {word.decode()} (expecting '{expected.decode()}')")
            self.position += 1

    def number(self) -> None:
        """Scan a number: sign, digits without leading zeros, fraction, exponent."""
        if self.peek() == b"-":
            self.position += 1
        if self.next_is(b"0"):
            self.position += 1
        else:
            self.digits("in numeric literal")
        if self.next_is(b"."):
            self.position += 1
            self.digits("after decimal point in numeric literal")
        if self.next_is(b"e", b"E"):
            self.position += 1
            self.position += self.next_is(b"+", b"-")
            self.digits("in exponent of numeric literal")

    def digits(self, context: str) -> None:
        if not self.peek().isdigit():
            raise self.unexpected(context)
        self.skip(_DIGITS)

    def skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def next_is(self, *wanted: bytes) -> bool:
        return self.text[self.position : self.position + 1] in wanted

    def peek(self) -> bytes:
        if self.position >= len(self.text):
            raise _ScanError(END)
        return self.text[self.position : self.position + 1]

    def unexpected(self, context: str) -> _ScanError:
        return _ScanError(f"invalid character {_byte_text(self.text[self.position])} {context}")


def _byte_text(byte: int) -> str:
    """A byte as Go's messages quote it."""
    character = chr(byte)
    if character in "'\\":
        return f"'\\{character}'"
    escaped = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}.get(character)
    if escaped is None:
        escaped = character if character.isprintable() else f"\\x{byte:02x}" if byte < 0x80 else f"\\u{byte:04x}"
    return f"'{escaped}'"
