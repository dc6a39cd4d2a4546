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
_MARKER_LINE = re.compile(rb"---[ \t]*(#[^\n]*)?\r?\n")
_END_MARKER = re.compile(rb"^\.\.\.[^\n]*\n?\Z", re.MULTILINE)
_LINE_WITHOUT_CONTENT = re.compile(rb"(?:---|\.\.\.)?\s*(?:[#%].*)?")
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
    def marker_line(self) -> bytes:
        """The line `---` before the document, with its comment; empty without one."""
        if not _MARKER.match(self.text):
            return b""
        line = _MARKER_LINE.match(self.text)
        return line[0] if line else b"---\n"  # the document may begin in the line of the marker: `--- {a: 1}`

    @property
    def end_marker(self) -> bytes:
        """The line `...` after the document; empty without one."""
        return b"...\n" if _END_MARKER.search(self.text) else b""


def format_of(content: bytes) -> Format:
    """The format of a file, determined by its first character and its markers."""
    return "json" if _JSON_START.match(content) and not _BOUNDARY.search(content) else "yaml"


def parse_documents(content: bytes) -> list[ManifestDocument]:
    """All parts of a file in order; their texts together are the file.

    Raises:
        UsageError: a document cannot be parsed; the sentence begins with its number.
    """
    parts: list[ManifestDocument] = []
    number = 1
    for part_bytes in split_parts(content):
        document = parse_part(number, part_bytes, format_of(content))
        parts.append(document)
        if document.number > 0:
            number += 1
    return parts


def split_parts(content: bytes) -> Iterator[bytes]:
    """The parts of a file; joined they are the file."""
    return _json_texts(content) if format_of(content) == "json" else _yaml_texts(content)


def parse_part(number: int, part_bytes: bytes, file_format: Format) -> ManifestDocument:
    """One part of a file. Raises UsageError, as `parse_documents`.

    Args:
        number: the number of the document, if the part has one.
        part_bytes: the part.
        file_format: the format of the file.
    """
    if all(_LINE_WITHOUT_CONTENT.fullmatch(line) for line in part_bytes.splitlines()):
        return ManifestDocument(0, part_bytes)
    try:
        if file_format == "json":
            return ManifestDocument(number, part_bytes, json_text.parse(part_bytes))
        parsed = yaml_text.parse(_without_marker_line(part_bytes))
    except DecodeError as error:
        raise UsageError(f"document {number}: {error}") from None
    return ManifestDocument(number, part_bytes, parsed.value, parsed.duplicates_text() if parsed.duplicates else "")


def _without_marker_line(part_bytes: bytes) -> bytes:
    """The part without the line `---` at its beginning; errors count lines from the one after it."""
    return _MARKER_LINE.sub(b"", part_bytes, count=1) if _MARKER_LINE.match(part_bytes) else part_bytes


def _yaml_texts(content: bytes) -> Iterator[bytes]:
    """Yields the texts of the documents, each with the comments before it; `...` ends a document with its line."""
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
    """Yields the values with the space before them, without a byte order mark; an invalid value takes the rest."""
    text = content.decode("utf-8-sig", errors="replace")
    decoder, start = json.JSONDecoder(), 0
    while start < len(text):
        space = _SPACE.match(text, start)
        value_start = space.end() if space else start
        try:
            _, end = decoder.raw_decode(text, value_start)
        except (ValueError, RecursionError):
            end = len(text)
        yield text[start:end].encode()
        start = end
