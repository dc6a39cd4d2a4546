"""Finds the first syntax error of a text that is not JSON, in the words of Go's encoding/json.

Called by `json_text` for bodies that the fast parser refused.

Theory of operation: a scanner reads the text once, without recursion, in linear time. `expect` is the method for the
next byte: it consumes what it accepts and sets the next `expect`. The scanner reads bytes, as Go does: one outside
ASCII is shown as its Latin-1 character.

Source: the behaviour of Go's encoding/json scanner (golden errors.jsonl, create-hpa.jsonl).
"""

import re

END = "unexpected end of JSON input"

_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_SPACE = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_HEX = b"0123456789abcdefABCDEF"
_KEY_WANTED = "looking for beginning of object key string"


class _ScanError(Exception):
    """The scanner found an error; str() is the sentence."""


def find_error(text: bytes) -> str:
    """The sentence about the first syntax error of `text` (`invalid character 'h' looking for beginning of value`).

    For valid JSON, which no caller passes, `invalid JSON`.
    """
    try:
        _Scanner(text).to_end()
    except _ScanError as error:
        return str(error)
    return "invalid JSON"


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0
        self.open: list[bytes] = []
        self.expect = self.value

    def to_end(self) -> None:
        while True:
            self.skip(_SPACE)
            if not self.open and self.expect == self.after_value:
                break
            self.expect()
        if self.at < len(self.text):
            raise self.unexpected("after top-level value")

    def value(self) -> None:
        first = self.peek()
        if first in (b"{", b"["):
            self.at += 1
            self.open.append(first)
            self.expect = self.first_key if first == b"{" else self.first_item
            return
        if first == b'"':
            self.string()
        elif first in _WORDS:
            self.word(_WORDS[first])
        elif first == b"-" or first.isdigit():
            self.number()
        else:
            raise self.unexpected("looking for beginning of value")
        self.expect = self.after_value

    def first_item(self) -> None:
        if self.peek() == b"]":
            self.close()
        else:
            self.expect = self.value

    def first_key(self) -> None:
        if self.peek() == b"}":
            self.close()
        else:
            self.key()

    def key(self) -> None:
        if self.peek() != b'"':
            raise self.unexpected(_KEY_WANTED)
        self.string()
        self.expect = self.colon

    def colon(self) -> None:
        if self.peek() != b":":
            raise self.unexpected("after object key")
        self.at += 1
        self.expect = self.value

    def after_value(self) -> None:
        in_object = self.open[-1] == b"{"
        following = self.peek()
        if following == b",":
            self.at += 1
            self.expect = self.key if in_object else self.value
        elif following == (b"}" if in_object else b"]"):
            self.close()
        else:
            raise self.unexpected("after object key:value pair" if in_object else "after array element")

    def close(self) -> None:
        self.at += 1
        self.open.pop()
        self.expect = self.after_value

    def string(self) -> None:
        self.at += 1
        while True:
            self.skip(_PLAIN)
            following = self.peek()
            if following == b"\\":
                self.escape()
            elif following == b'"':
                self.at += 1
                return
            else:
                raise self.unexpected("in string literal")

    def escape(self) -> None:
        self.at += 1
        code = self.peek()
        if code not in b'"\\/bfnrtu':
            raise self.unexpected("in string escape code")
        self.at += 1
        for _ in range(4 if code == b"u" else 0):
            if self.peek() not in _HEX:
                raise self.unexpected("in \\u hexadecimal character escape")
            self.at += 1

    def word(self, word: bytes) -> None:
        for index in range(len(word)):
            wanted = word[index : index + 1]
            if self.peek() != wanted:
                raise self.unexpected(f"in literal {word.decode()} (expecting '{wanted.decode()}')")
            self.at += 1

    def number(self) -> None:
        if self.peek() == b"-":
            self.at += 1
        if self.next_is(b"0"):
            self.at += 1
        else:
            self.digits("in numeric literal")
        if self.next_is(b"."):
            self.at += 1
            self.digits("after decimal point in numeric literal")
        if self.next_is(b"e", b"E"):
            self.at += 1
            self.at += self.next_is(b"+", b"-")
            self.digits("in exponent of numeric literal")

    def digits(self, place: str) -> None:
        if not self.peek().isdigit():
            raise self.unexpected(place)
        self.skip(_DIGITS)

    def skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def next_is(self, *wanted: bytes) -> bool:
        return self.text[self.at : self.at + 1] in wanted

    def peek(self) -> bytes:
        if self.at >= len(self.text):
            raise _ScanError(END)
        return self.text[self.at : self.at + 1]

    def unexpected(self, place: str) -> _ScanError:
        return _ScanError(f"invalid character {_shown(self.text[self.at])} {place}")


def _shown(byte: int) -> str:
    character = chr(byte)
    if character in "'\\":
        return f"'\\{character}'"
    escaped = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}.get(character)
    if escaped is None:
        escaped = character if character.isprintable() else f"\\x{byte:02x}" if byte < 0x80 else f"\\u{byte:04x}"
    return f"'{escaped}'"
