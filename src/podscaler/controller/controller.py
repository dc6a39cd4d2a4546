"""The controller: follows autoscalers and pods, and looks at each autoscaler once a period and whenever it is edited.

`podscaler controller` and `podscaler up` run one. Rules:

1. A new autoscaler and one with a new generation are looked at immediately; anything else waits for the next period,
   which an immediate look neither shifts nor resets. A period is counted from when the look before was due. Those that
   are there at the start are looked at one after the other, in the order of their names and 50 a second at least, so
   that they do not come all at once ever after.
2. One autoscaler is never looked at twice at the same time, whatever the number of turns.
3. Nothing that goes wrong with one autoscaler affects another, and no failure of the API server ends the controller.
4. A turn that came to nothing because the API server did not answer is taken again early (`early_turns`).
5. What is remembered of an autoscaler is dropped when its next turn finds it gone.
6. Only what the Share has is looked at, and nothing is written by a tenure that is over.

Source: docs/spec/controller.md 1 (State) to 3 (Processing one key).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.base.workqueue import ShutDown
from podscaler.controller.assignment import FLUSH_TIMEOUT_S, STOP_TIMEOUT_S, Parts
from podscaler.controller.coexistence import standby
from podscaler.controller.coexistence.standby import Standing
from podscaler.controller.history import effective_settings
from podscaler.controller.informers import handover, observed_objects
from podscaler.controller.informers.autoscaler_informer import FollowedAutoscalers
from podscaler.controller.informers.observed_objects import Autoscaler, CachedPod
from podscaler.controller.informers.other_controllers import OtherControllers
from podscaler.controller.leaderelection import fence, timeouts
from podscaler.controller.leaderelection.fence import Deposed
from podscaler.controller.leaderelection.shard_ownership import all_of_it
from podscaler.controller.options import gates
from podscaler.controller.options.autoscaler_kinds import HPA, object_key, of_key
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.queue import MeteredQueue
from podscaler.controller.reacting import Reactor
from podscaler.controller.reconcile.reconcile import AutoscalerReconciler, Outdated, subject_of
from podscaler.controller.reconcile.state import Memory
from podscaler.controller.reconcile.surroundings import Surroundings
from podscaler.controller.recording.recording import End, Recording
from podscaler.controller.telemetry import syncing
from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.controller.telemetry.syncing import Reconciling
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache, Key
from podscaler.kube.informers.watch import Reflector
from podscaler.metrics.listed import KnownPods
from podscaler.metrics.source import MetricsSource

log = logging.getLogger(__name__)

RESTART_DELAY_S = 1.0


class Controller:
    """See the module's rules.

    Args:
        client: the API server to work on; the caller closes it.
        settings: what the flags say.
        clock: all of the controller's time.
        metrics: where metrics come from; None: the metrics APIs of the same API server.
        recording: where syncs are reported; the caller ends it.
        rng: for jitter and for the correlation of events.

    Attributes:
        parts: what elections tell of what comes and goes.
    """

    def __init__(
        self,
        client: Client,
        settings: ControllerSettings,
        clock: Clock,
        *,
        metrics: MetricsSource | None = None,
        recording: Recording | None = None,
        rng: random.Random | None = None,
    ) -> None:
        rng = rng or random.Random()
        rules = settings.decision.emulation
        self._settings = settings
        self._clock = clock
        self._client = client
        others = None
        if settings.other_controller != standby.IGNORE and HPA in settings.kinds:
            others = OtherControllers(client, clock, own=settings.field_manager)
        self._autoscalers = FollowedAutoscalers(client, settings, clock, rng=rng, others=others)
        self._pods: Cache[CachedPod] = Cache()
        self._standing = Standing(
            is_dry_run=settings.dry_run,
            others=others,
            policy=settings.other_controller,
            is_current=self._autoscalers.is_current,
        )
        around = Surroundings.of(client, settings, clock, metrics=metrics, recording=recording, rng=rng)
        around = around.standing_by(self._standing, self._autoscalers.rivals, settings)
        around = around.reading(self._autoscalers.find)
        self._around = around.listing(KnownPods(self._pods.count, self._pod_names), settings)
        self.telemetry.count_recording(self._around.recording)
        pods = observed_objects.pods(rules, with_text=self._around.recording.is_on)
        self._pod_watch = Reflector(client, pods, cache=self._pods, clock=clock, rng=rng)
        self._memory = Memory()
        self._queue = MeteredQueue(clock, self.telemetry.queue, period_s=settings.sync_period_s)
        self._reconciler: Reconciling = AutoscalerReconciler(self._around, self._memory, self._pods, settings)
        self._reactor = Reactor(self._around, self._memory, self._pods, settings)
        self._stopping = asyncio.Event()
        self._is_open = False
        self.parts = Parts(
            self._around,
            self._memory,
            queue=self._queue,
            period_ns=settings.sync_period_ns,
            wait_listed=self.wait_listed,
        )
        self._autoscalers.subscribe(self)

    @property
    def telemetry(self) -> Telemetry:
        """The controller's Prometheus metrics."""
        return self._around.telemetry

    @property
    def health(self) -> ServerHealth:
        """What is known of the API server's."""
        return self._around.health

    def unready(self) -> list[str]:
        """Why the controller does not work yet, one reason a line; empty when it does."""
        reasons = [*self.health.unready(), *self._autoscalers.unready()]
        if not self._pods.synced:
            reasons.append(f"pods are not listed yet: {self._pod_watch.last_error or 'soon'}")
        return reasons or self._standing.unready()

    async def run(self) -> None:
        """Work until `stop` is called, or until cancelled."""
        background = [
            self._background("the watch of autoscalers", self._autoscalers.run),
            self._background("the watch of pods", self._pod_watch.run),
            self._background("the watches of targets", self._around.followed.run),
            self._background("the writer of events", self._around.recorder.run),
            self._background("the recording", self._around.recording.run),
            self._background("the archive of histories", self._around.archive.run),
            self._background("the publication of settings", self._publish_settings),
        ]
        try:
            await timeouts.first_of(self._wait_synced(), self._stopping.wait())
            if not self._stopping.is_set():
                self._open()
                background.append(self._background("the giving of turns", self._give_turns))
                if self._settings.reacts:
                    background.append(self._background("the look at changes", self._react))
                await self._stopping.wait()
                await timeouts.first_of(self.parts.ended(all_of_it), self._clock.sleep(STOP_TIMEOUT_S))
            await timeouts.first_of(self._around.recorder.flush(), self._clock.sleep(FLUSH_TIMEOUT_S))
        finally:
            self._queue.shut_down()
            await self.parts.cancel()
            await timeouts.end(*background)
            await timeouts.first_of(self._around.archive.close(), self._clock.sleep(FLUSH_TIMEOUT_S))
            if self._around.comparison is not None:
                log.info("%s", self._around.comparison.summary)

    def look_on(self, around: Callable[[Reconciling], Reconciling]) -> None:
        """Have every sync pass through what `around` makes of the reconciler; call it before `run`."""
        self._reconciler = around(self._reconciler)

    async def stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Make `run` end once the running syncs are done."""
        self._stopping.set()
        self._queue.shut_down()

    def added(self, obj: Autoscaler) -> None:
        """The watch has a new autoscaler: look at it now."""
        key = obj.key
        self._memory.register(key)
        self.parts.count(key)
        if self._is_mine(key):
            self._queue.add(key)

    def updated(self, old: Autoscaler, new: Autoscaler) -> None:
        """The watch has a newer version: look at it now if it was edited, else within a period."""
        if self._autoscalers.waits(old) != self._autoscalers.waits(new):
            self.added(new)
            return
        is_edited = old.metadata.generation != new.metadata.generation
        if is_edited and self._settings.gates.enabled(gates.HPA_GENERATION):
            self.added(new)
        elif self._is_mine(new.key):
            self._queue.add_after(new.key, self._settings.sync_period_s)

    def deleted(self, obj: Autoscaler) -> None:
        """The watch says that an autoscaler is gone."""
        self._memory.unregister(obj.key, obj.metadata.uid)
        self.parts.discount(obj.key)

    async def _wait_synced(self) -> None:
        await self.wait_listed()
        log.info("following %d autoscalers and %d pods", len(self._autoscalers), len(self._pods))

    async def wait_listed(self) -> None:
        """Return once all autoscalers and pods are known."""
        await self._autoscalers.wait_synced()
        await self._pods.wait_synced()

    def _open(self) -> None:
        """Begin with the autoscalers that are there."""
        self._is_open = True
        self.parts.begin(all_of_it)

    def _is_mine(self, key: Key) -> bool:
        """Whether the autoscaler is to be looked at here, now that everything is known."""
        return self._is_open and self.parts.tenure(key) is not None

    def _pod_names(self, namespace: str, selector: Selector) -> Sequence[str]:
        return [pod.metadata.name for pod in self._pods.select(namespace, selector)]

    async def _publish_settings(self) -> None:
        """Say what settings decisions are made with, each time that this process begins to decide."""
        while not self._settings.dry_run:
            await self.parts.has_begun.wait()
            self.parts.has_begun.clear()
            while self._standing.leaves_all_alone:
                await self._clock.sleep(RESTART_DELAY_S)
            await effective_settings.publish(self._client, self._settings, self._clock)

    async def _react(self) -> None:
        await self._reactor.run(_Chosen(self._autoscalers, self._is_mine), self._queue.add)

    async def _give_turns(self) -> None:
        while True:
            turn = await self._around.turns.take()
            try:
                key = await self._queue.get()
            except BaseException as error:
                turn.give()
                if isinstance(error, ShutDown):
                    return
                raise
            self.parts.run(key, self._sync(key), turn)

    async def _sync(self, key: Key) -> None:
        syncing.CURRENT.set(key)
        await self._turn(key)

    async def _turn(self, key: Key) -> None:
        tenure = self.parts.tenure(key)
        if tenure is None:
            return  # whoever takes it up again queues it
        if tenure.remaining_s() <= 0:
            self._queue.add_after(key, RESTART_DELAY_S)  # the lease is being renewed, or lost
            return
        fence.enter(tenure)
        began_s = self._clock.monotonic_s()
        try:
            is_there = await self._process(key)
        except Deposed as error:
            log.info("the sync of %s/%s ends: %s", *key, error)
            self._queue.add_after(key, RESTART_DELAY_S)
            return
        except Exception:
            log.exception("the sync of %s/%s failed in a way that is a bug; it is tried again", *key)
            self.telemetry.sync_panicked(self._clock.monotonic_s() - began_s)
            self._queue.add_after(key, self._settings.sync_period_s)
            await self._clock.sleep(RESTART_DELAY_S)
            return
        if is_there:
            self._queue_next(key)

    def _queue_next(self, key: Key) -> None:
        """Have the next turn of an autoscaler come when it is due, or early."""
        self._queue.add_next(key)
        early_s = self._memory.early.delay_s(key, self._settings.sync_period_s)
        if early_s is not None:
            self._queue.add_after(key, early_s)

    async def _process(self, key: Key) -> bool:
        """Look at one autoscaler; whether it (still) exists, so that it has to be looked at again."""
        self._memory.early.begin(key)
        if self._settings.gates.enabled(gates.STALE_CONTROLLER_CONSISTENCY):
            lag = self._memory.versions.find_lag(key, self._autoscalers.version(key))
            if lag is not None:
                self.telemetry.stale_skip()
                self._memory.early.miss(key)
                log.debug("%s %s/%s is skipped: %s", _word(key), *object_key(key), lag)
                return True
        autoscaler = self._autoscalers.find(key)
        if autoscaler is None:
            log.info("%s %s/%s has been deleted", _word(key), *object_key(key))
            self._memory.forget(key)
            self._around.forget(key)
            self._around.recording.report(End(self._clock.now_ns(), key))
            return False
        if self._autoscalers.waits(autoscaler):
            self._wait(autoscaler)
            return True
        self._memory.go_on(key)
        try:
            await self._reconciler.reconcile(autoscaler)
        except Outdated as edit:
            log.debug("%s", edit)
            self._queue.add(key)
        return True

    def _wait(self, autoscaler: Autoscaler) -> None:
        """Say once that an autoscaler waits, for those that wait for us; whoever stands by has no word to give."""
        is_news = self._memory.wait(autoscaler.key)
        if is_news and not self._settings.dry_run:
            message = handover.said_of(autoscaler.metadata.annotations or {})
            self._around.recorder.record(subject_of(autoscaler), "Normal", handover.WAITING, message)

    def _background(self, name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._keep(name, part), name=name)

    async def _keep(self, name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await part()
                return
            except Exception:
                log.exception("%s failed in a way that is a bug; it starts again", name)
                self.telemetry.panicked(name.removeprefix("the "))
            await self._clock.sleep(RESTART_DELAY_S)


class _Chosen:
    """Those autoscalers that are ours, whenever somebody looks through them."""

    def __init__(self, autoscalers: Iterable[Autoscaler], is_mine: Callable[[Key], bool]) -> None:
        self._autoscalers = autoscalers
        self._is_mine = is_mine

    def __iter__(self) -> Iterator[Autoscaler]:
        return (each for each in self._autoscalers if self._is_mine(each.key))


def _word(key: Key) -> str:
    return of_key(key).word
