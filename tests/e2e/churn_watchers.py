"""Watchers of the churn test: each follows ConfigMaps and, when the server dies, goes on from what it saw last.

They share one history, as every event must look the same to all of them; each keeps the revisions that it was told, in
the order in which they came.
"""

import asyncio

import aiohttp
import msgspec
from churn_writers import Access, path_of

RETRY_S = 0.5


class _Metadata(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    resourceVersion: str  # noqa: N815 - the wire's spelling


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: _Metadata
    data: dict[str, str] = {}


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _ConfigMap


class Seen(msgspec.Struct, frozen=True):
    """One event as watchers were told it."""

    type: str
    namespace: str
    name: str
    uid: str
    serial: str

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


History = dict[int, Seen]
"""All events that anybody was told, by revision."""

_decode = msgspec.json.Decoder(_Event).decode


class Watcher:
    """See the module.

    Args:
        namespace: whose ConfigMaps, empty for all.
        since: the revision after which it begins.
        history: what all watchers saw.

    Attributes:
        told: the revisions of the events that it got, in order.
        watches: how many it had to begin.
        faults: what must not be, in words.
    """

    def __init__(self, namespace: str, since: int, history: History) -> None:
        self.namespace = namespace
        self.told: list[int] = []
        self.watches = 0
        self.faults: list[str] = []
        self._last = since
        self._history = history

    @property
    def last(self) -> int:
        """The newest revision that it knows of."""
        return self._last

    async def run(self, session: aiohttp.ClientSession, access: Access) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await self._watch_once(session, access)
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(RETRY_S)

    async def _watch_once(self, session: aiohttp.ClientSession, access: Access) -> None:
        host, port, token, context = access
        path = path_of(self.namespace) if self.namespace else "/api/v1/configmaps"
        url = f"https://{host}:{port}{path}?watch=true&resourceVersion={self._last}"
        headers = {"Authorization": f"Bearer {token}"}
        async with session.get(url, headers=headers, ssl=context) as answer:
            if answer.status != 200:
                self.faults.append(f"the watch is answered {answer.status}: {await answer.text()}")
                return
            self.watches += 1
            async for line in answer.content:
                if line.endswith(b"\n"):  # the last line of a server that was killed may be cut anywhere
                    self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            event = _decode(line)
        except msgspec.ValidationError:
            self.faults.append(f"no event of a ConfigMap: {line.decode()}")
            return
        metadata = event.object.metadata
        revision = int(metadata.resourceVersion)
        if revision <= self._last:
            self.faults.append(f"{revision} came after {self._last}")
        self._last = revision
        self.told.append(revision)
        serial = event.object.data.get("serial", "")
        seen = Seen(event.type, metadata.namespace, metadata.name, metadata.uid, serial)
        if self._history.setdefault(revision, seen) != seen:
            self.faults.append(f"{revision} is {seen} here and {self._history[revision]} elsewhere")
