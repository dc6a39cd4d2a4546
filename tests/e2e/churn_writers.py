"""Writers of the churn test: each keeps changing ConfigMaps of its own and knows what was acknowledged.

A write whose answer never came may or may not have happened: the writer looks, and takes either for right, anything
else for a fault. It runs in a thread of its own, as its client blocks and never sends anything twice.
"""

import http.client
import json
import ssl
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kept_connection import KeptConnection

from patience import WITHIN_S

Object = dict[str, Any]
Access = tuple[str, int, str, ssl.SSLContext]
"""Host, port, token and TLS of the server."""

LIVE_MAX = 12
PAUSE_S = 0.02
RETRY_S = 0.05
MERGE_PATCH = "application/merge-patch+json"


def path_of(namespace: str, name: str = "") -> str:
    """Where ConfigMaps are."""
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


@dataclass(frozen=True)
class Known:
    """A ConfigMap as it is known to be; `serial` tells every write from every other."""

    uid: str
    revision: int
    serial: str


@dataclass(frozen=True)
class Acknowledged:
    """One write that was answered; a deletion has no revision of its own."""

    verb: str
    key: str
    known: Known


@dataclass
class Ledger:
    """What all writers together did; lists may be appended to from any thread.

    Attributes:
        acknowledged: every write that was answered.
        unanswered: for each write that was not, whether it happened.
        faults: what must not be, in words.
    """

    acknowledged: list[Acknowledged] = field(default_factory=list)
    unanswered: list[bool] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many writes were acknowledged, by verb."""
        return dict(Counter(write.verb for write in self.acknowledged))


class Writer:
    """See the module.

    Args:
        access: how to reach the server.
        namespace: where its objects are.
        index: of this writer; its objects' names and choices follow from it.
        ledger: where it keeps account.
    """

    def __init__(self, access: Access, namespace: str, index: int, ledger: Ledger) -> None:
        self._access = access
        self._namespace = namespace
        self._index = index
        self._ledger = ledger
        self._random = Random(index)
        self._live: dict[str, Known] = {}
        self._serial = 0
        self._connection: KeptConnection | None = None

    def run(self, stop: threading.Event) -> None:
        """Write until told to stop."""
        try:
            while not stop.is_set():
                self._write()
                stop.wait(PAUSE_S)
        finally:
            self._disconnect()

    def _write(self) -> None:
        self._serial += 1
        serial = f"{self._index}-{self._serial}"
        verb = self._random.choice(("create", "update", "update", "patch", "patch", "delete"))
        if verb == "create" or not self._live:
            if len(self._live) < LIVE_MAX:
                self._try("create", f"w{self._index}-{self._serial}", serial)
        else:
            self._try(verb, self._random.choice(sorted(self._live)), serial)

    def _try(self, verb: str, name: str, serial: str) -> None:
        before = self._live.get(name)
        try:
            status, body = self._send(verb, name, serial)
        except (OSError, http.client.HTTPException):
            self._disconnect()
            self._look(verb, name, serial)
            return
        if status not in (200, 201):
            self._ledger.faults.append(f"{verb} of {name}: {status} {body}")
            self._look(verb, name, serial)
            return
        known = before if verb == "delete" else _known(body)
        assert known is not None
        self._ledger.acknowledged.append(Acknowledged(verb, f"{self._namespace}/{name}", known))
        self._remember(name, None if verb == "delete" else known)

    def _send(self, verb: str, name: str, serial: str) -> tuple[int, Object]:
        data = {"data": {"serial": serial}}
        match verb:
            case "create":
                return self._exchange("POST", path_of(self._namespace), {"metadata": {"name": name}, **data})
            case "update":
                metadata = {"name": name, "resourceVersion": str(self._live[name].revision)}
                return self._exchange("PUT", path_of(self._namespace, name), {"metadata": metadata, **data})
            case "patch":
                return self._exchange("PATCH", path_of(self._namespace, name), data)
            case _:
                return self._exchange("DELETE", path_of(self._namespace, name))

    def _look(self, verb: str, name: str, serial: str) -> None:
        """Find out what became of a write whose answer never came."""
        before = self._live.get(name)
        found = self._find(name)
        allowed = (before.serial if before else None, None if verb == "delete" else serial)
        shown = found.serial if found else None
        if shown not in allowed:
            self._ledger.faults.append(f"{verb} of {name}: {shown} is there, which is none of {allowed}")
        self._ledger.unanswered.append(shown == allowed[1])
        self._remember(name, found)

    def _find(self, name: str) -> Known | None:
        deadline_s = time.monotonic() + WITHIN_S
        while True:
            try:
                status, body = self._exchange("GET", path_of(self._namespace, name))
                assert status in (200, 404), body
                return _known(body) if status == 200 else None
            except (OSError, http.client.HTTPException):
                self._disconnect()
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(RETRY_S)

    def _remember(self, name: str, known: Known | None) -> None:
        if known is None:
            self._live.pop(name, None)
        else:
            self._live[name] = known

    def _exchange(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        if self._connection is None:
            host, port, _, context = self._access
            self._connection = KeptConnection(host, port, context=context, timeout=WITHIN_S)
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._access[2]}", "Content-Type": content_type}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.end()
            self._connection = None


def _known(body: Object) -> Known:
    metadata = body["metadata"]
    return Known(metadata["uid"], int(metadata["resourceVersion"]), body["data"]["serial"])
