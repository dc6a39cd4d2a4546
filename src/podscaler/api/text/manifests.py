"""Splits a manifest into documents with their texts, so that unchanged documents can be written back byte for byte.

Called by `podscaler convert`, `podscaler lint` and `podscaler.simulation.files`. A file is YAML (documents between
`---` lines) or JSON (values one after the other). Parts without a document (comments, empty lines) are kept, but not
counted.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podscaler.api.text import json_text, yaml_text
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import UsageError

Format = Literal["yaml", "json"]

_BOUNDARY = re.compile(rb"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_MARKER = re.compile(rb"---(?=\s|$)")
_COMMENT = re.compile(rb"---[ \t]*(#[^\n]*)?\r?\n")
_END = re.compile(rb"^\.\.\.[^\n]*\n?\Z", re.MULTILINE)
_NOTHING = re.compile(rb"(?:---|\.\.\.)?\s*(?:[#%].*)?")
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """One document.

    Attributes:
        number: counted from 1; 0 for a part without a document.
        text: its bytes in the file, the line that begins it included.
        value: as parsed (`json_text.parse`, `yaml_text.parse`).
        repeated: the strict decoding error about repeated keys of YAML, empty without any; for JSON `value` has them.
    """

    number: int
    text: bytes
    value: Any = None
    repeated: str = ""

    @property
    def head(self) -> bytes:
        """The marker line (`---`) before the document, with its comment; empty without one."""
        if not _MARKER.match(self.text):
            return b""
        commented = _COMMENT.match(self.text)
        return commented[0] if commented else b"---\n"

    @property
    def tail(self) -> bytes:
        """The end marker (`...`), empty without one."""
        return b"...\n" if _END.search(self.text) else b""


def format_of(content: bytes) -> Format:
    """The format of a file, determined by its first character and its markers."""
    return "json" if _JSON_START.match(content) and not _BOUNDARY.search(content) else "yaml"


def documents(content: bytes) -> list[ManifestDocument]:
    """All parts of a file in order; their texts together are the file.

    Raises:
        UsageError: a document cannot be parsed; the sentence begins with its number.
    """
    documents_found: list[ManifestDocument] = []
    number = 1
    for text in texts(content):
        documents_found.append(document := read(number, text, format_of(content)))
        number += document.number > 0
    return documents_found


def texts(content: bytes) -> Iterator[bytes]:
    """The parts of a file; joined they are the file."""
    return _json_texts(content) if format_of(content) == "json" else _yaml_texts(content)


def read(number: int, text: bytes, kind: Format) -> ManifestDocument:
    """One part of a file, the document of that number if it holds one. Raises UsageError, as `documents`."""
    if all(_NOTHING.fullmatch(line) for line in text.splitlines()):
        return ManifestDocument(0, text)
    try:
        if kind == "json":
            return ManifestDocument(number, text, json_text.parse(text))
        parsed = yaml_text.parse(_COMMENT.sub(b"", text, count=1) if _COMMENT.match(text) else text)
    except DecodeError as error:
        raise UsageError(f"document {number}: {error}") from None
    return ManifestDocument(number, text, parsed.value, parsed.duplicates_text() if parsed.duplicates else "")


def _yaml_texts(content: bytes) -> Iterator[bytes]:
    """The texts of the documents, each with the comments before it; `...` ends a document with its line."""
    start = 0
    for boundary in _BOUNDARY.finditer(content):
        end = boundary.start()
        if content.startswith(b"...", end):
            line_end = content.find(b"\n", end)
            end = len(content) if line_end < 0 else line_end + 1
        if end > start:
            yield content[start:end]
            start = end
    if start < len(content):
        yield content[start:]


def _json_texts(content: bytes) -> Iterator[bytes]:
    """The values with the space before them; an invalid value takes the rest of the file."""
    text = content.decode("utf-8-sig", errors="replace")
    decoder, start = json.JSONDecoder(), 0
    while start < len(text):
        space = _SPACE.match(text, start)
        begin = space.end() if space else start
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = len(text)
        yield text[start:end].encode()
        start = end
