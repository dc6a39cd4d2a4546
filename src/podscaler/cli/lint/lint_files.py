"""Reads the objects of files, folders and standard input for `podscaler lint`.

Called by `podscaler.cli.lint.lint`. A document that is neither YAML nor JSON becomes an item with that fault, so that
it is reported as a finding.
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
from podscaler.lint.model.linted_item import APIFinding, DocumentOrigin, Item

STANDARD = "-"
STANDARD_NAME = "standard input"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True, slots=True)
class _File:
    """A file with its content.

    Attributes:
        name: in messages.
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
    files: dict[str, _File] = {}
    for name in names:
        for file in _files(name):
            files.setdefault(file.name, file)
    return [item for file in files.values() for item in _items(file, namespace)]


def _files(name: str) -> Iterator[_File]:
    if name == STANDARD:
        yield _File(STANDARD_NAME, sys.stdin.buffer.read(), True)
        return
    path = Path(name)
    if not path.is_dir():
        yield _File(name, _content(path), True)
        return
    for found in sorted(path.rglob("*")):
        is_hidden = any(part.startswith(".") for part in found.relative_to(path).parts)
        if found.suffix in _SUFFIXES and not is_hidden and found.is_file():
            yield _File(str(found), _content(found), False)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _items(file: _File, namespace: str) -> Iterator[Item]:
    kind, number, line = manifests.format_of(file.content), 1, 1
    for text in manifests.texts(file.content):
        origin = DocumentOrigin(file.name, line, text)
        line += text.count(b"\n")
        try:
            document = manifests.read(number, text, kind)
        except UsageError as error:
            yield _broken(origin, str(error))
            number += 1
            continue
        number += document.number > 0
        if document.number and (file.is_named or _is_object(document.value)):
            yield from _of_document(document, origin, namespace)


def _broken(origin: DocumentOrigin, fault: str) -> Item:
    """The item for a document that cannot be parsed, at the line that the fault names.

    Lines are counted from below the marker, and in some faults from zero, as upstream's reader counts them.
    """
    found = _LINE.search(fault)
    within = int(found[1]) - 1 + origin.text.startswith(b"---") if found else 0
    within = min(within, origin.text.count(b"\n"))
    return Item("", "", "", "", {}, {}, replace(origin, line=origin.line + within, text=b""), (APIFinding("", fault),))


def _is_object(value: Any) -> bool:
    """Whether a document is a Kubernetes object: folders contain other files, too."""
    return isinstance(value, dict) and "apiVersion" in value and "kind" in value


def _of_document(document: manifests.ManifestDocument, origin: DocumentOrigin, namespace: str) -> Iterator[Item]:
    for index, item in enumerate(reading.items(document.value, origin, namespace)):
        if index == 0 and document.repeated:
            yield replace(item, faults=(APIFinding("", document.repeated), *item.faults))
        else:
            yield item
