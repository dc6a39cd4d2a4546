"""`/openapi/v3`: the index of OpenAPI documents, and the documents.

Called by `non_resource_handlers`. All documents are made, in a thread, when the first one is asked for: the index names
each with the hash of its content, by which clients keep it. They are kept compressed, as most clients take them.

Source: KEP-2896 (OpenAPI v3): `/openapi/v3` and `/openapi/v3/apis/GROUP/VERSION?hash=...`.
"""

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from podscaler.api.text import json_text
from podscaler.controlplane.aggregator.layer import Aggregation
from podscaler.controlplane.aggregator.versions import METRIC_GROUPS
from podscaler.controlplane.apiserver.http import negotiation
from podscaler.controlplane.apiserver.http.responses import TEXT, EncodedResponse

Make = Callable[[], Mapping[str, Any]]
Documents = Callable[[], Mapping[str, Make]]
"""What is served now: by path (`apis/apps/v1`), functions that make the documents."""


@dataclass(frozen=True, slots=True)
class _Document:
    packed: bytes
    digest: str
    make: Make


class OpenApiPages:
    """See the module.

    Args:
        documents: what is served now.
        generation: a number that rises when that changes.
        aggregation: who else serves what.
    """

    def __init__(
        self, documents: Documents, generation: Callable[[], int], aggregation: Aggregation | None = None
    ) -> None:
        self._aggregation = aggregation
        self._documents = documents
        self._generation = generation
        self._made: dict[str, _Document] = {}
        self._made_at = -1
        self._lock = asyncio.Lock()

    async def answer(self, request: web.BaseRequest, parts: list[str]) -> EncodedResponse | None:
        """The index (`v3`) or a document (`v3/apis/...`); None where there is none."""
        if not parts or parts[0] != "v3":
            return None
        made = await self._current()
        path = "/".join(parts[1:])
        if not path:
            own = {name: f"/openapi/v3/{name}?hash={document.digest}" for name, document in made.items()}
            urls = {name: {"serverRelativeURL": url} for name, url in sorted(self._with_others(own).items())}
            return EncodedResponse(json_text.encode({"paths": urls}), 200, TEXT)
        found = made.get(path)
        return await _of(request, found) if found else EncodedResponse(b"", 404, TEXT)

    async def schemas(self) -> dict[str, Any]:
        """The schemas of all documents by name."""
        return await asyncio.to_thread(_schemas, await self._current())

    def _with_others(self, own: dict[str, str]) -> dict[str, str]:
        """The addresses of our documents and of other servers', which have theirs from their servers."""
        if self._aggregation is None:
            return own
        remotes = self._aggregation.remotes
        gone = {f"apis/{group}/" for group in remotes.groups if group in METRIC_GROUPS}
        kept = {name: url for name, url in own.items() if not name.startswith(tuple(gone))}
        for remote in remotes.all():
            name, url = remote.path.removeprefix("/"), self._aggregation.documents.told(remote).openapi_url
            kept.pop(name, None)
            if url:
                kept[name] = url
        return kept

    async def _current(self) -> Mapping[str, _Document]:
        async with self._lock:
            generation = self._generation()
            if generation != self._made_at:
                self._made = await asyncio.to_thread(_make, self._documents(), self._made)
                self._made_at = generation
            return self._made


def _make(documents: Mapping[str, Make], known: Mapping[str, _Document]) -> dict[str, _Document]:
    """The documents; one that is still made by the same function is still the same."""
    return {
        path: known[path] if path in known and known[path].make is make else _document(make)
        for path, make in documents.items()
    }


def _document(make: Make) -> _Document:
    body = json_text.encode(make())
    return _Document(gzip.compress(body, mtime=0), hashlib.sha512(body).hexdigest().upper(), make)


def _schemas(documents: Mapping[str, _Document]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for document in documents.values():
        found |= json.loads(gzip.decompress(document.packed)).get("components", {}).get("schemas", {})
    return found


async def _of(request: web.BaseRequest, document: _Document) -> EncodedResponse:
    etag = f'"{document.digest}"'
    headers = {"ETag": etag, "Vary": "Accept, Accept-Encoding"}
    if request.query_string:  # with its hash, the URL is of this content alone
        headers["Cache-Control"] = "public, immutable, max-age=31536000"
    if request.headers.get("If-None-Match") == etag:
        return EncodedResponse(b"", 304, headers=headers)
    if negotiation.takes_gzip(request.headers):
        return EncodedResponse(document.packed, headers={**headers, "Content-Encoding": "gzip"})
    return EncodedResponse(await asyncio.to_thread(gzip.decompress, document.packed), headers=headers)
