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
_CONTROL_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_HEX = b"0123456789abcdefABCDEF"
_KEY_EXPECTED = "looking for beginning of object key string"


class _ScanError(Exception):
    """The scanner found a syntax error; str() is the message."""


def find_error(body: bytes) -> str:
    """The message about the first syntax error; `invalid JSON` for valid JSON, which no caller passes."""
    try:
        _Scanner(body).scan_all()
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

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.position = 0
        self.open_brackets: list[bytes] = []
        self.expect_next = self.scan_value

    def scan_all(self) -> None:
        """Scans the whole text: a value, with nothing but space after it."""
        while True:
            self.skip(_SPACE)
            if not self.open_brackets and self.expect_next == self.scan_after_value:
                break
            self.expect_next()
        if self.position < len(self.body):
            raise self.unexpected_character("after top-level value")

    def scan_value(self) -> None:
        """Scans a literal, or the bracket that opens an object or an array."""
        first_byte = self.peek()
        if first_byte in (b"{", b"["):
            self.position += 1
            self.open_brackets.append(first_byte)
            self.expect_next = self.scan_first_key if first_byte == b"{" else self.scan_first_item
            return
        if first_byte == b'"':
            self.scan_string()
        elif first_byte in _LITERALS:
            self.scan_literal(_LITERALS[first_byte])
        elif first_byte == b"-" or first_byte.isdigit():
            self.scan_number()
        else:
            raise self.unexpected_character("looking for beginning of value")
        self.expect_next = self.scan_after_value

    def scan_first_item(self) -> None:
        """Scans an empty array to its end; prepares for the first element of another one."""
        if self.peek() == b"]":
            self.scan_closing_bracket()
        else:
            self.expect_next = self.scan_value

    def scan_first_key(self) -> None:
        """Scans an empty object to its end, or the first key of another one."""
        if self.peek() == b"}":
            self.scan_closing_bracket()
        else:
            self.scan_key()

    def scan_key(self) -> None:
        """Scans the key of a member."""
        if self.peek() != b'"':
            raise self.unexpected_character(_KEY_EXPECTED)
        self.scan_string()
        self.expect_next = self.scan_colon

    def scan_colon(self) -> None:
        """Scans the colon after a key."""
        if self.peek() != b":":
            raise self.unexpected_character("after object key")
        self.position += 1
        self.expect_next = self.scan_value

    def scan_after_value(self) -> None:
        """Scans the comma or the closing bracket after a value in an object or array."""
        in_object = self.open_brackets[-1] == b"{"
        next_byte = self.peek()
        if next_byte == b",":
            self.position += 1
            self.expect_next = self.scan_key if in_object else self.scan_value
        elif next_byte == (b"}" if in_object else b"]"):
            self.scan_closing_bracket()
        else:
            raise self.unexpected_character("after object key:value pair" if in_object else "after array element")

    def scan_closing_bracket(self) -> None:
        """Scans a closing bracket, which ends a value."""
        self.position += 1
        self.open_brackets.pop()
        self.expect_next = self.scan_after_value

    def scan_string(self) -> None:
        """Scans a string from its first quote to its last."""
        self.position += 1
        while True:
            self.skip(_STRING_CONTENT)
            next_byte = self.peek()
            if next_byte == b"\\":
                self.scan_escape()
            elif next_byte == b'"':
                self.position += 1
                return
            else:
                raise self.unexpected_character("in string literal")

    def scan_escape(self) -> None:
        """Scans an escape sequence from its backslash; `u` has four hexadecimal digits."""
        self.position += 1
        code = self.peek()
        if code not in b'"\\/bfnrtu':
            raise self.unexpected_character("in string escape code")
        self.position += 1
        for _ in range(4 if code == b"u" else 0):
            if self.peek() not in _HEX:
                raise self.unexpected_character("in \\u hexadecimal character escape")
            self.position += 1

    def scan_literal(self, literal: bytes) -> None:
        """Scans `true`, `false` or `null`."""
        for index in range(len(literal)):
            expected = literal[index : index + 1]
            if self.peek() != expected:
                raise self.unexpected_character(f"in literal {literal.decode()} (expecting '{expected.decode()}')")
            self.position += 1

    def scan_number(self) -> None:
        """Scans a number: sign, digits without leading zeros, fraction, exponent."""
        if self.peek() == b"-":
            self.position += 1
        if self.next_is(b"0"):
            self.position += 1
        else:
            self.scan_digits("in numeric literal")
        if self.next_is(b"."):
            self.position += 1
            self.scan_digits("after decimal point in numeric literal")
        if self.next_is(b"e", b"E"):
            self.position += 1
            if self.next_is(b"+", b"-"):
                self.position += 1
            self.scan_digits("in exponent of numeric literal")

    def scan_digits(self, context: str) -> None:
        """Scans at least one digit; `context` is the end of the message if there is none."""
        if not self.peek().isdigit():
            raise self.unexpected_character(context)
        self.skip(_DIGITS)

    def skip(self, pattern: re.Pattern[bytes]) -> None:
        """Skips the bytes that the pattern matches."""
        match = pattern.match(self.body, self.position)
        self.position = match.end() if match else self.position

    def next_is(self, *expected_bytes: bytes) -> bool:
        """Whether the next byte is one of `expected_bytes`; False at the end."""
        return self.body[self.position : self.position + 1] in expected_bytes

    def peek(self) -> bytes:
        """The next byte, which is not consumed. Raises _ScanError at the end."""
        if self.position >= len(self.body):
            raise _ScanError(END)
        return self.body[self.position : self.position + 1]

    def unexpected_character(self, context: str) -> _ScanError:
        """The error about the next byte; `context` says where it is: `after object key`."""
        return _ScanError(f"invalid character {_byte_text(self.body[self.position])} {context}")


def _byte_text(byte: int) -> str:
    """A byte as Go's messages quote it."""
    character = chr(byte)
    if character in "'\\":
        return f"'\\{character}'"
    if character in _CONTROL_ESCAPES:
        return f"'{_CONTROL_ESCAPES[character]}'"
    if character.isprintable():
        return f"'{character}'"
    return f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"
