"""Caches the scales of the workloads that autoscalers target, from watches instead of requests.

`podscaler.controller.informers.scale_client` reads them. Rules:

1. A kind is watched from the first autoscaler on that targets it. Until it is listed, and while its watch fails (a
   missing permission, a server that is away), scales are requested one by one.
2. After the controller's own write of a scale `find` returns None until the watch has returned that write.
3. A scale that is not found here may exist: only the API server's response decides that it does not.
4. The scale of a workload is derived from the workload, equal to its scale subresource (a test compares them). Only the
   fields of a scale are decoded, so that a list of thousands of workloads is cheap.

Source: docs/spec/controller.md 10 (REST requests); Kubernetes v1.37.0, the scale subresources of apps/v1 and of core/v1
ReplicationController. Differs: kube-controller-manager requests every scale in every sync.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import field

from podscaler.api.machinery import selectors
from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.api.machinery.selectors import SelectorError
from podscaler.api.typed.autoscaling import Scale, ScaleSpec, ScaleStatus
from podscaler.base.clock import Clock
from podscaler.controller.informers import consistency
from podscaler.controller.informers.consistency import WrittenVersion
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import RESTMapping
from podscaler.kube.informers.cache import Cache, Key, key_of
from podscaler.kube.informers.reflector import Reflector, WatchSource

Resource = tuple[str, str]
"""The group and plural of a kind of workloads."""


class _Meta(Wire, frozen=True):
    """The fields of a workload's metadata that are read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None


class _Spec(Wire, frozen=True):
    """The fields of a workload's spec that are read; `selector` is a LabelSelector as its JSON object."""

    replicas: int = 1
    selector: dict[str, Any] | None = None


class _Status(Wire, frozen=True):
    """The fields of a workload's status that are read."""

    replicas: int = 0


class _Workload(Wire, frozen=True):
    """A workload (a Deployment, a ReplicationController, ...) as watches return it."""

    metadata: _Meta = field(default_factory=_Meta)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


_DECODER = msgspec.json.Decoder(_Workload)


def _label_selector_text(selector: dict[str, Any] | None) -> str:
    """The text of a LabelSelector, which is its JSON object; None selects nothing."""
    return str(selectors.from_label_selector(selector))


def _label_map_text(selector: dict[str, Any] | None) -> str:
    """The text of a selector that is a map of labels, as a ReplicationController has it."""
    return str(selectors.from_labels(selector or {}))


SELECTOR_TEXTS: Mapping[Resource, Callable[[dict[str, Any] | None], str]] = {
    ("apps", "deployments"): _label_selector_text,
    ("apps", "replicasets"): _label_selector_text,
    ("apps", "statefulsets"): _label_selector_text,
    ("", "replicationcontrollers"): _label_map_text,
}
"""The resources whose scales can be derived (a new one: here alone), and how the selector of each becomes text."""


def scale_decoder(resource: Resource) -> Callable[[msgspec.Raw], Scale]:
    """A decoder of scales from workloads in JSON, for a resource of SELECTOR_TEXTS; it raises ValueError."""
    selector_text = SELECTOR_TEXTS[resource]

    def decode_scale(workload_json: msgspec.Raw) -> Scale:
        workload = _DECODER.decode(workload_json)
        meta, spec = workload.metadata, workload.spec
        try:
            selector = selector_text(spec.selector)
        except SelectorError as error:
            raise ValueError(f"{meta.namespace}/{meta.name}: {error}") from error
        return Scale(
            api_version="autoscaling/v1",
            metadata=ObjectMeta(
                name=meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                creation_timestamp=meta.creation_timestamp,
            ),
            spec=ScaleSpec(spec.replicas),
            status=ScaleStatus(workload.status.replicas, selector),
        )

    return decode_scale


ALL_KEYS: Key = ("", "")
"""The key for all writes before the first list: as no list may ever show which of their objects were deleted, they
count as one."""


class _WatchedKind:
    """One watched kind: its scales, its watch, and our writes that the watch has not returned yet."""

    def __init__(self, scales: Cache[Scale], reflector: Reflector[Scale]) -> None:
        self.scales = scales
        self.reflector = reflector
        self._written: dict[Key, WrittenVersion] = {}
        scales.subscribe(self)

    def is_behind(self, key: Key) -> bool:
        """Whether the cache lacks our last write of that scale, or one before the first list; forgets those it has."""
        for written_key in (ALL_KEYS, key):
            if consistency.find_lag(self._written.get(written_key), self.scales.version) is not None:
                return True
            self._written.pop(written_key, None)
        return False

    def note_write(self, key: Key, written_version: WrittenVersion) -> None:
        """Take note of our own write of a scale."""
        self._written[key] = consistency.latest(self._written.get(key), written_version)

    def added(self, scale: Scale) -> None:
        """No write is recorded."""

    def updated(self, old: Scale, new: Scale) -> None:
        """A recorded write stays until a read finds it in the cache."""

    def deleted(self, scale: Scale) -> None:
        """A write of a deleted object is forgotten."""
        written_version = self._written.get(key_of(scale))
        if written_version is not None and written_version.uid == scale.metadata.uid:
            del self._written[key_of(scale)]


class TargetInformer:
    """The scales of all targets that can be watched, by the module's rules."""

    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._watched: dict[Resource, _WatchedKind] = {}
        self._has_new_kinds = asyncio.Event()

    async def run(self) -> None:
        """Watch the kinds that are targeted, until cancelled."""
        async with asyncio.TaskGroup() as group:
            running: set[Resource] = set()
            while True:
                for resource in self._watched.keys() - running:
                    group.create_task(self._watched[resource].reflector.run(), name=f"the watch of {resource[1]}")
                    running.add(resource)
                self._has_new_kinds.clear()
                await self._has_new_kinds.wait()

    def find(self, mapping: RESTMapping, key: Key) -> Scale | None:
        """The scale of the object of that key; None if it has to be requested. The first call for a kind watches it."""
        resource = (mapping.group, mapping.plural)
        watched = self._watched.get(resource)
        if watched is None:
            if resource in SELECTOR_TEXTS:
                self._watch(resource, mapping.version)
            return None
        if not watched.scales.synced or not watched.reflector.is_watching:
            return None
        return None if watched.is_behind(key) else watched.scales.find(key)

    def note_write(self, mapping: RESTMapping, scale: Scale) -> None:
        """Take note of our own write of a scale, with the scale that the API server returned."""
        watched = self._watched.get((mapping.group, mapping.plural))
        if watched is not None:
            meta = scale.metadata
            key, uid = (key_of(scale), meta.uid) if watched.scales.synced else (ALL_KEYS, "")
            watched.note_write(key, WrittenVersion(uid, meta.resource_version))

    def _watch(self, resource: Resource, version: str) -> None:
        """Begin to watch a kind of workloads in that API version; `run` starts the reflector."""
        group, plural = resource
        source = WatchSource(
            urls.group_version(group, version) + urls.path(plural),
            f"{plural}.{group}" if group else plural,
            scale_decoder(resource),
        )
        scales: Cache[Scale] = Cache()
        reflector = Reflector(self._client, source, cache=scales, clock=self._clock, rng=self._rng)
        self._watched[resource] = _WatchedKind(scales, reflector)
        self._has_new_kinds.set()
