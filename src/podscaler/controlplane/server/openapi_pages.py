"""`/openapi/v3`: the index of OpenAPI documents, and the documents.

Called by `pages`. A document is made when it is first asked for, in a thread; the index names each with a hash of what
is served, so that clients may keep a document as long as its hash stays.

Source: KEP-2896 (OpenAPI v3): `/openapi/v3` and `/openapi/v3/apis/GROUP/VERSION?hash=...`.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from podscaler.api import json_text
from podscaler.controlplane.server import answers
from podscaler.controlplane.server.answers import TEXT, Answer

Documents = Callable[[], Mapping[str, Callable[[], Mapping[str, Any]]]]
"""The documents there are now, by path (`apis/apps/v1`), each as a function that makes it."""

NO_DOCUMENTS: Documents = dict


class OpenApiPages:
    """See the module."""

    def __init__(self, documents: Documents = NO_DOCUMENTS) -> None:
        self._documents = documents
        self._made: dict[str, bytes] = {}
        self._lock = asyncio.Lock()

    async def answer(self, request: web.BaseRequest, parts: list[str]) -> Answer | None:
        """The index (`v3`) or a document (`v3/apis/...`); None where there is none."""
        if not parts or parts[0] != "v3":
            return None
        documents = self._documents()
        path = "/".join(parts[1:])
        if not path:
            urls = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={_hash(name)}"} for name in documents}
            return Answer(json_text.encode({"paths": urls}), 200, TEXT)
        make = documents.get(path)
        if make is None:
            return answers.NOT_FOUND_PAGE
        return await self._document(request, path, make)

    async def _document(self, request: web.BaseRequest, path: str, make: Callable[[], Mapping[str, Any]]) -> Answer:
        etag = f'"{_hash(path)}"'
        headers = {"ETag": etag, "Cache-Control": "public, immutable", "Vary": "Accept"}
        if request.headers.get("If-None-Match") == etag:
            return Answer(b"", 304, headers=headers)
        async with self._lock:
            body = self._made.get(path)
            if body is None:
                body = self._made[path] = await asyncio.to_thread(lambda: json_text.encode(make()))
        return Answer(body, headers=headers)


def _hash(name: str) -> str:
    return hashlib.sha512(name.encode()).hexdigest().upper()
