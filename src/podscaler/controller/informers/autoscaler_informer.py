"""Caches autoscalers by list and watch: HorizontalPodAutoscalers, and PodAutoscalers.

`podscaler.controller.controller` subscribes to changes; syncs read the caches by the keys of
`podscaler.controller.options.autoscaler_kinds`. Rules:

1. Handlers get the changes of the kinds that the controller manages (`--autoscaler-kinds`), and iteration gives those
   autoscalers.
2. Where PodAutoscalers are managed, HorizontalPodAutoscalers are watched in any case: a PodAutoscaler may have the same
   target as one, or may replace one in a migration.
3. Where the CustomResourceDefinition of PodAutoscalers does not exist, nothing waits for it; they are managed once it
   exists.

A third kind of autoscalers: in `podscaler.controller.options.autoscaler_kinds`, and in the loop of `__init__`.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator

from podscaler.base.clock import Clock
from podscaler.controller.informers import handover, observed_objects
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import OtherControllers
from podscaler.controller.options import feature_gates
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER, AutoscalerKind, object_key, of_key
from podscaler.controller.options.settings import ControllerSettings
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache, Key, ResourceEventHandler
from podscaler.kube.informers.reflector import Reflector

POLL_PERIOD_S = 0.05
"""How often it is checked whether all kinds are listed."""

TargetReference = tuple[str, str, str, str]
"""A target: namespace, group, kind, name."""


class AutoscalerInformer:
    """The cache of all autoscalers of the managed kinds, by the module's rules.

    Args:
        settings: has the managed kinds, and how decisions read specs.
        other_controllers: detects other controllers from each HorizontalPodAutoscaler; None if they are not detected.
    """

    def __init__(
        self,
        client: Client,
        settings: ControllerSettings,
        clock: Clock,
        *,
        rng: random.Random,
        other_controllers: OtherControllers | None = None,
    ) -> None:
        self._managed_kinds = settings.kinds
        self._syncs_edits_at_once = settings.gates.enabled(feature_gates.HPA_GENERATION)
        self._clock = clock
        self._other_controllers = other_controllers
        self._caches: dict[AutoscalerKind, Cache[Autoscaler]] = {}
        self._watches: dict[AutoscalerKind, Reflector[Autoscaler]] = {}
        self._unmanaged = _TargetIndex()
        for kind in (HPA, POD_AUTOSCALER):
            if kind in self._managed_kinds or (kind is HPA and POD_AUTOSCALER in self._managed_kinds):  # rule 2
                on_read = other_controllers.note if other_controllers is not None and kind is HPA else None
                source = observed_objects.autoscaler_source(settings.decision, kind, on_read=on_read)
                self._caches[kind] = Cache()
                self._watches[kind] = Reflector(client, source, cache=self._caches[kind], clock=clock, rng=rng)
        if HPA in self._caches and HPA not in self._managed_kinds:
            self._caches[HPA].subscribe(self._unmanaged)
        if HPA in self._caches and other_controllers is not None:
            self._caches[HPA].subscribe(_OnDeletion(lambda autoscaler: other_controllers.forget(autoscaler.key)))

    def __iter__(self) -> Iterator[Autoscaler]:
        for kind in self._managed_kinds:
            yield from self._caches[kind]

    def __len__(self) -> int:
        return sum(len(self._caches[kind]) for kind in self._managed_kinds)

    def subscribe(self, handler: ResourceEventHandler[Autoscaler]) -> None:
        """Call `handler` with every change of managed autoscalers; those that no longer wait are reported as added."""
        for kind in self._managed_kinds:
            self._caches[kind].subscribe(handler)
        if HPA in self._caches and POD_AUTOSCALER in self._managed_kinds:
            self._caches[HPA].subscribe(_OnDeletion(lambda hpa: self._resume_waiting(hpa.metadata.uid, handler)))

    def find(self, key: Key) -> Autoscaler | None:
        """The autoscaler of that key; None if there is none."""
        return self._caches[of_key(key)].find(object_key(key))

    def version(self, key: Key) -> str:
        """The resourceVersion up to which the cache of its kind is complete."""
        return self._caches[of_key(key)].version

    def is_waiting(self, autoscaler: Autoscaler) -> bool:
        """Whether an autoscaler waits for a migration (`handover`), so that it is not synced."""
        return autoscaler.kind is POD_AUTOSCALER and handover.is_waiting(autoscaler.metadata, self._find_hpa_uid)

    def is_urgent(self, old: Autoscaler, new: Autoscaler) -> bool:
        """Whether a new version is to be synced at once: its spec was edited, or its handover begins or ends."""
        is_edited = old.metadata.generation != new.metadata.generation
        return (is_edited and self._syncs_edits_at_once) or self.is_waiting(old) != self.is_waiting(new)

    def is_current(self, autoscaler: Autoscaler) -> bool:
        """Whether a PodAutoscaler still exists and does not wait for a handover; true for other kinds."""
        if autoscaler.kind is not POD_AUTOSCALER:
            return True
        latest = self.find(autoscaler.key)
        return latest is not None and latest.metadata.uid == autoscaler.metadata.uid and not self.is_waiting(latest)

    def find_status_writer(self, key: Key) -> str:
        """The other controller that wrote the status of a HorizontalPodAutoscaler last; empty if none is known."""
        return "" if self._other_controllers is None else self._other_controllers.find_status_writer(key)

    def conflicting(self, autoscaler: Autoscaler) -> Iterable[Key]:
        """The keys of the HorizontalPodAutoscalers with the same target, where this controller does not manage them."""
        return self._unmanaged.find(autoscaler)

    def unready(self) -> list[str]:
        """The kinds that are not listed yet, one sentence each."""
        unlisted = [kind for kind in self._caches if not self._is_listed_or_absent(kind)]
        return [f"{kind.plural} are not listed yet: {self._watches[kind].last_error or 'soon'}" for kind in unlisted]

    async def wait_synced(self) -> None:
        """Return once all kinds are listed and, with that, `OtherControllers.note_listed` has returned.

        PodAutoscalers beside another kind are polled, as their definition may be missing (rule 3).
        """
        for kind, cache in self._caches.items():
            if kind is HPA or len(self._managed_kinds) == 1:
                await cache.wait_synced()
            while not self._is_listed_or_absent(kind):
                await self._clock.sleep(POLL_PERIOD_S)
        if self._other_controllers is not None:
            await self._other_controllers.note_listed()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind, watch in self._watches.items():
                group.create_task(watch.run(), name=f"the watch of {kind.plural}")
            if self._other_controllers is not None:
                group.create_task(self._other_controllers.run(), name="the watch of other controllers")

    def _resume_waiting(self, uid: str, handler: ResourceEventHandler[Autoscaler]) -> None:
        """Report PodAutoscalers as added that waited for the deletion of the HorizontalPodAutoscaler with that uid."""
        for pod_autoscaler in list(self._caches[POD_AUTOSCALER]):
            origin = handover.find_origin(pod_autoscaler.metadata)
            if origin is not None and origin.uid == uid:
                handler.added(pod_autoscaler)

    def _is_listed_or_absent(self, kind: AutoscalerKind) -> bool:
        """Whether a kind is listed, or its definition is missing and there are other kinds (rule 3)."""
        is_absent = not self._watches[kind].is_served and len(self._managed_kinds) > 1
        return self._caches[kind].synced or (kind is POD_AUTOSCALER and is_absent)

    def _find_hpa_uid(self, key: Key) -> str | None:
        hpa = self._caches[HPA].find(key)
        return None if hpa is None else hpa.metadata.uid


class _TargetIndex:
    """An event handler that indexes autoscalers by target."""

    def __init__(self) -> None:
        self._keys: dict[TargetReference, set[Key]] = {}

    def find(self, autoscaler: Autoscaler) -> Iterable[Key]:
        """The keys of the indexed autoscalers that have the target of `autoscaler`."""
        return self._keys.get(target_of(autoscaler), ())

    def added(self, autoscaler: Autoscaler) -> None:
        """Index a new autoscaler."""
        self._keys.setdefault(target_of(autoscaler), set()).add(autoscaler.key)

    def updated(self, old: Autoscaler, new: Autoscaler) -> None:
        """Index an autoscaler again if its target changed."""
        if target_of(old) != target_of(new):
            self.deleted(old)
            self.added(new)

    def deleted(self, autoscaler: Autoscaler) -> None:
        """Remove a deleted autoscaler."""
        keys = self._keys.get(target_of(autoscaler), set())
        keys.discard(autoscaler.key)
        if not keys:
            self._keys.pop(target_of(autoscaler), None)


class _OnDeletion:
    """An event handler that calls a function with each deleted autoscaler."""

    def __init__(self, deleted: Callable[[Autoscaler], None]) -> None:
        self.deleted = deleted

    def added(self, autoscaler: Autoscaler) -> None:
        """Nothing to do."""

    def updated(self, old: Autoscaler, new: Autoscaler) -> None:
        """Nothing to do."""


def target_of(autoscaler: Autoscaler) -> TargetReference:
    """The target of an autoscaler."""
    reference = autoscaler.wire.spec.scale_target_ref
    group = reference.api_version.rpartition("/")[0]
    return autoscaler.metadata.namespace, group, reference.kind, reference.name
