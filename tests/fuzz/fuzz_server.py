"""An API server with everything that can be served, in a thread of its own, for the tests of this folder.

Metrics are objects like others, removed versions of autoscalers are served, there are two custom kinds, and the node
is played: containers log one line, run nothing and accept no connection.
"""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_manifests as manifests
from fuzz_client import Client, Request
from fuzz_verdict import Alarm

from podscaler.api.kinds import catalog
from podscaler.api.kinds.autoscaling import hpa_removed_versions
from podscaler.api.kinds.core import metrics
from podscaler.api.text import json_text
from podscaler.base.clock import SystemClock
from podscaler.controlplane.admission import limit_ranges, pod_classes
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.controllers.cluster import bootstrap
from podscaler.controlplane.controllers.cluster.namespace_defaults import make_system_namespaces
from podscaler.controlplane.credentials import signing_key
from podscaler.controlplane.metrics.custom.apis import MetricValues
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams
from podscaler.controlplane.registry.providers import LogOptions
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import ADMIN, User
from podscaler.controlplane.storage.store import open_store, run_inline

RESOURCES = metrics.with_stored_metrics(hpa_removed_versions.with_removed_versions(catalog.RESOURCES))
ADMIN_TOKEN = "admin-token"
READER_TOKEN = "reader-token"
NOBODY_TOKEN = "nobody-token"
TOKENS = (ADMIN_TOKEN, READER_TOKEN, NOBODY_TOKEN)
START_TIMEOUT_S = 120


class PlayedNode:
    """A node on which the container `c` of every pod is about to be removed."""

    def find_container(self, pod: Any, container: str) -> "PlayedNode | None":
        """Only c."""
        return self if container == "c" else None

    def is_running(self, pod: Any) -> bool:
        """Every pod."""
        return True

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> Any:
        """Nothing."""
        raise SessionFailure("nothing runs here")

    async def attach(self, options: SessionStreams) -> Any:
        """Nothing."""
        raise SessionFailure("nothing runs here")

    async def connect(self, pod: Any, port: int) -> Any:
        """Nobody listens."""
        raise SessionFailure("connection refused")

    async def stream(self, pod: Any, options: LogOptions) -> AsyncIterator[bytes]:
        """One line."""
        yield b"2026-01-01T00:00:00Z one\n"


@dataclass(frozen=True)
class Target:
    """What is fuzzed: a server, a client of it, and what it logged."""

    client: Client
    alarm: Alarm
    objects: Objects

    def ensure(self) -> None:
        """Have one object of each kind, by the name that requests take most often."""
        for path, manifest in [*manifests.OPENING, *manifests.OBJECTS.items()]:
            if not self._has(path, manifest["metadata"]["name"]):
                body = json_text.encode(manifest)
                self.client.send(Request("POST", path, (("Content-Type", "application/json"),), body))

    def _has(self, path: str, name: str) -> bool:
        """Whether there is an object of that name; asked beside the server, which would take longer to refuse it."""
        root, *group, plural = path.removeprefix("/").replace(f"/namespaces/{manifests.NAMESPACE}", "").split("/")
        resource = f"{plural}.{group[0]}" if root == "apis" else plural
        namespace = manifests.NAMESPACE if "/namespaces/" in path else ""
        return self.objects.knows(resource) and self.objects.find(resource, namespace, name) is not None


@contextmanager
def fuzzed(folder: Path) -> Iterator[Target]:
    """A server that keeps its objects in `folder`, with an object of each kind."""
    alarm, started, stop = Alarm(), threading.Event(), threading.Event()
    serving: list[tuple[int, Objects]] = []
    thread = threading.Thread(target=lambda: asyncio.run(_serve(folder, serving, started, stop)), daemon=True)
    logging.getLogger().addHandler(alarm)
    thread.start()
    assert started.wait(START_TIMEOUT_S)
    ((port, objects),) = serving
    target = Target(Client(port), alarm, objects)
    target.ensure()
    yield target
    target.client.close()
    stop.set()
    thread.join(START_TIMEOUT_S)
    logging.getLogger().removeHandler(alarm)
    logged = alarm.taken()
    assert not logged, logged


async def _serve(
    folder: Path, serving: list[tuple[int, Objects]], started: threading.Event, stop: threading.Event
) -> None:
    clock = SystemClock()
    store = await open_store(folder, clock, run=run_inline, is_synced=False)
    objects = Objects(store, [resource for resource in RESOURCES if resource.stored])
    registry = Registry(objects)
    accounts = AccountTokens(signing_key.generate(), objects.find, clock)
    known = {READER_TOKEN: User("reader", ("readers",)), NOBODY_TOKEN: User("nobody"), ADMIN_TOKEN: ADMIN}
    node = PlayedNode()
    values = MetricValues(registry, RESOURCES, lambda _namespace: {}, clock)
    parts = ServerParts(logs=node, connections=node, metrics=values, accounts=accounts)
    await make_system_namespaces(registry)
    await bootstrap.ensure_policy(registry)
    await pod_classes.make_system_classes(registry)
    limit_ranges.register(objects)
    pod_classes.register(objects)
    cluster_ips = ClusterIPs(registry, clock, AddressBlock(200))
    objects.set_allocator("services", cluster_ips.allocate)
    objects.listen(cluster_ips.on_commit)
    users = Authenticator(known, accounts)
    server = ApiServer(objects, RESOURCES, authenticator=users, tls=None, clock=clock, parts=parts)
    serving.append((await server.start("127.0.0.1", 0), objects))
    following = asyncio.create_task(values.run())
    started.set()
    await asyncio.to_thread(stop.wait)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await server.stop()
    await store.close()


def any_token(rng: random.Random) -> str:
    """Mostly the admin's."""
    return rng.choices(TOKENS, (8, 1, 1))[0]
