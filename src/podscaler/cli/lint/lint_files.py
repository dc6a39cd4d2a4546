"""Reads the objects of files, folders and standard input for `podscaler lint`.

Called by `podscaler.cli.lint.lint`. Each object becomes an `Item` with its file and line. A document that cannot be
parsed becomes an item with the error, so that the error is reported as a finding. Files of folders are those with a
suffix of _SUFFIXES.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podscaler.api.text import manifests
from podscaler.base.errors import UsageError
from podscaler.lint.model import reading
from podscaler.lint.model.linted_item import APIError, DocumentOrigin, Item

STANDARD_INPUT = "-"
"""The name of a file that means standard input."""
STANDARD_INPUT_NAME = "standard input"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_LINE_IN_ERROR = re.compile(r"\bline (\d+)")


@dataclass(frozen=True, slots=True)
class _InputFile:
    """A file with its content.

    Attributes:
        name: the path, as messages show it.
        is_named: whether the user named it, not a folder that contains it.
    """

    name: str
    content: bytes
    is_named: bool


def read(names: Iterable[str], namespace: str) -> list[Item]:
    """The objects of all files, in order; a file that is named twice counts once.

    Args:
        names: of files and folders; `-` is standard input.
        namespace: for objects that name none.

    Raises:
        UsageError: a file does not exist, or cannot be read.
    """
    files: dict[str, _InputFile] = {}
    for name in names:
        for file in _read_files(name):
            files.setdefault(file.name, file)
    return [item for file in files.values() for item in _items_of_file(file, namespace)]


def _read_files(name: str) -> Iterator[_InputFile]:
    """The file of a name, all manifests below a folder without hidden ones, or standard input. Raises UsageError."""
    if name == STANDARD_INPUT:
        yield _InputFile(STANDARD_INPUT_NAME, sys.stdin.buffer.read(), is_named=True)
        return
    path = Path(name)
    if not path.is_dir():
        yield _InputFile(name, _read_content(path), is_named=True)
        return
    for file in sorted(path.rglob("*")):
        is_hidden = any(folder_or_name.startswith(".") for folder_or_name in file.relative_to(path).parts)
        if file.suffix in _SUFFIXES and not is_hidden and file.is_file():
            yield _InputFile(str(file), _read_content(file), is_named=False)


def _read_content(path: Path) -> bytes:
    """The bytes of a file. Raises UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _items_of_file(file: _InputFile, namespace: str) -> Iterator[Item]:
    """The objects of a file, each with its place; a document that cannot be parsed is an item with its error."""
    input_format = manifests.format_of(file.content)
    document_number = 1  # of the next document: `parse_part` numbers an empty part 0, which is not counted
    line = 1
    for document_bytes in manifests.split_parts(file.content):
        origin = DocumentOrigin(file.name, line, document_bytes)
        line += document_bytes.count(b"\n")
        try:
            document = manifests.parse_part(document_number, document_bytes, input_format)
        except UsageError as error:
            yield _unparsed_item(origin, str(error))
            document_number += 1
            continue
        if document.number == 0:
            continue
        document_number += 1
        if file.is_named or _is_object(document.value):  # folders contain files that are no manifests, too
            yield from _document_items(document, origin, namespace)


def _unparsed_item(origin: DocumentOrigin, error: str) -> Item:
    """The item for a document that cannot be parsed, at the line that the error names, else at the document's first."""
    line_match, offset = _LINE_IN_ERROR.search(error), 0
    if line_match:  # counts from 1 below the marker `---`; some are one too low, as of Kubernetes' YAML reader
        offset = int(line_match[1]) - 1 + origin.text.startswith(b"---")
    line = origin.line + min(offset, origin.text.count(b"\n"))
    place, api_errors = replace(origin, line=line, text=b""), (APIError("", error),)
    return Item(api_version="", kind="", namespace="", name="", written={}, obj={}, origin=place, api_errors=api_errors)


def _is_object(document_value: Any) -> bool:
    """Whether a document has the form of a Kubernetes object."""
    return isinstance(document_value, dict) and "apiVersion" in document_value and "kind" in document_value


def _document_items(document: manifests.ManifestDocument, origin: DocumentOrigin, namespace: str) -> Iterator[Item]:
    """The objects of a document; the first one gets the finding that the document has a key twice."""
    for index, item in enumerate(reading.items(document.value, origin, namespace)):
        if index == 0 and document.repeated:
            yield replace(item, api_errors=(APIError("", document.repeated), *item.api_errors))
        else:
            yield item
