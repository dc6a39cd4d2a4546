"""Reads the files of the page from the package once, and serves them from memory.

`podscaler.dashboard.server` looks up each path that is not one of its routes. Only files that were found in the folders
at the start exist, so that no path leads out of them. A further type of file: in CONTENT_TYPES.
"""

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import NamedTuple

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".LICENSE": "text/plain; charset=utf-8",
}
INDEX = "index.html"
PREFIX = "static/"
"""May precede each path: the page itself is at `/`, its scripts at `/static/...`."""


class StaticFile(NamedTuple):
    """One file, with the headers that depend on it."""

    body: bytes
    content_type: str
    etag: str


class StaticFiles:
    """The files of some folders with an extension in CONTENT_TYPES; making it reads them, which blocks.

    Args:
        folders: folders of the package by the beginning of their paths (`charts/`; empty: the root); one that does not
            exist is skipped.
    """

    def __init__(self, folders: Mapping[str, Traversable]) -> None:
        self._files: dict[str, StaticFile] = {}
        for prefix, folder in folders.items():
            for path, body in _read_folder(folder, prefix):
                content_type = CONTENT_TYPES.get(path[path.rfind(".") :])
                if content_type is not None:
                    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
                    self._files.setdefault(path, StaticFile(body, content_type, etag))  # the first folder's counts

    def find(self, path: str) -> StaticFile | None:
        """The file of a URL path, with or without `/static`; `/` is the page; None if there is no such file."""
        name = path.removeprefix("/").removeprefix(PREFIX)
        return self._files.get(name or INDEX)


def _read_folder(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    """The path, which begins with the prefix, and the content of each file below a folder."""
    if not folder.is_dir():
        return
    for file in folder.iterdir():
        if file.is_dir():
            yield from _read_folder(file, f"{prefix}{file.name}/")
        else:
            yield f"{prefix}{file.name}", file.read_bytes()
