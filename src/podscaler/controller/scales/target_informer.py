"""The scales of targets without asking for each: workloads of the kinds that autoscalers target, followed by watches.

`podscaler.controller.scales.target` asks here first. Rules:

1. A kind is followed from the first autoscaler on that targets it. Until its list has come, and while its watch fails
   (a missing permission, a server that is away), scales are asked for one by one.
2. A scale that we wrote is seen as written: until the watch has brought the write back, nothing is found here.
3. What is not found here may still exist: whoever asks tells "not found" only after asking the server.

Source: docs/spec/controller.md 10 (REST requests). Differs: upstream asks the server for every scale in every sync.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Protocol

from podscaler.api.typed.autoscaling import Scale
from podscaler.base.clock import Clock
from podscaler.controller.scales import derived_scales
from podscaler.controller.scales.consistency import ConsistencyStore
from podscaler.controller.scales.derived_scales import Resource
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import RESTMapping
from podscaler.kube.informers.cache import Cache, Key, key_of
from podscaler.kube.informers.watch import Reflector, WatchSource

ANY: Key = ("", "")
"""What is written before the first list counts as one write, as there may never be a list that shows who is gone."""


class KnownScales(Protocol):
    """Who may know a scale without asking."""

    def find(self, mapping: RESTMapping, key: Key) -> Scale | None:
        """The scale of the object of that key; None where it has to be asked for."""
        ...

    def wrote(self, mapping: RESTMapping, scale: Scale) -> None:
        """We wrote a scale, which the server then answered."""
        ...


class NoneKnown:
    """Every scale is asked for."""

    def find(self, mapping: RESTMapping, key: Key) -> Scale | None:
        """None."""
        del mapping, key
        return None

    def wrote(self, mapping: RESTMapping, scale: Scale) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class _Followed:
    """One kind: its scales, what keeps them current, and what we wrote that has not come back."""

    scales: Cache[Scale]
    reflector: Reflector[Scale]
    written: "_Written"


class _Written(ConsistencyStore):
    """Our writes, forgotten with the objects."""

    def added(self, obj: Scale) -> None:
        """Nothing to forget."""

    def updated(self, old: Scale, new: Scale) -> None:
        """Nothing to forget."""

    def deleted(self, obj: Scale) -> None:
        """The workload is gone."""
        self.forget(key_of(obj), obj.metadata.uid)


class FollowedTargets:
    """See the module's rules.

    Args:
        client: where to list and watch.
        clock: for waits.
        rng: for spread in time.
    """

    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._followed: dict[Resource, _Followed] = {}
        self._more = asyncio.Event()

    async def run(self) -> None:
        """Follow what is asked for, until cancelled."""
        async with asyncio.TaskGroup() as group:
            running: set[Resource] = set()
            while True:
                for resource in self._followed.keys() - running:
                    group.create_task(self._followed[resource].reflector.run(), name=f"the watch of {resource[1]}")
                    running.add(resource)
                self._more.clear()
                await self._more.wait()

    def find(self, mapping: RESTMapping, key: Key) -> Scale | None:
        """As KnownScales."""
        resource = (mapping.group, mapping.plural)
        followed = self._followed.get(resource)
        if followed is None:
            if resource in derived_scales.SELECTOR_TEXTS:
                self._follow(resource, mapping.version)
            return None
        if not followed.scales.synced or not followed.reflector.is_watching:
            return None
        version = followed.scales.version
        if any(followed.written.find_lag(each, version) is not None for each in (ANY, key)):
            return None
        return followed.scales.find(key)

    def wrote(self, mapping: RESTMapping, scale: Scale) -> None:
        """As KnownScales."""
        followed = self._followed.get((mapping.group, mapping.plural))
        if followed is not None:
            meta = scale.metadata
            key, uid = (key_of(scale), meta.uid) if followed.scales.synced else (ANY, "")
            followed.written.wrote(key, uid, meta.resource_version)

    def _follow(self, resource: Resource, version: str) -> None:
        group, plural = resource
        source = WatchSource(
            urls.group_version(group, version) + urls.path(plural),
            f"{plural}.{group}" if group else plural,
            derived_scales.reader(resource),
        )
        scales: Cache[Scale] = Cache()
        written = _Written()
        scales.subscribe(written)
        reflector = Reflector(self._client, source, cache=scales, clock=self._clock, rng=self._rng)
        self._followed[resource] = _Followed(scales, reflector, written)
        self._more.set()
