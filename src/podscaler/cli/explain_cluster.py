"""The explanation of an autoscaler as a cluster shows it now, by the controller's own way of looking. Writes nothing.

Called by `podscaler.cli.explain`. What earlier syncs left (recommendations, changes) is the controller's; a
HistorySource tells it where the controller keeps it in the cluster.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import msgspec

from podscaler import __version__
from podscaler.api import instants, selectors
from podscaler.api.selectors import Selector, SelectorError
from podscaler.cli import explain_request
from podscaler.cli.explain_request import Answer, Facts, Request
from podscaler.clock import Clock
from podscaler.controller import following, history_maps
from podscaler.controller.following import Autoscaler, CachedPod
from podscaler.controller.memory import Memory
from podscaler.controller.observe import Observer
from podscaler.controller.settings import Settings
from podscaler.controller.surroundings import Surroundings
from podscaler.core import decide, what_if
from podscaler.core import spec as specs
from podscaler.core.explanation import comparison, explained, wording
from podscaler.core.explanation.source import Source
from podscaler.core.history import History, Recommendation
from podscaler.core.model import Observation
from podscaler.errors import StatusError, UsageError
from podscaler.kube import http_transport, urls
from podscaler.kube.cache import Cache, Cached, key_of
from podscaler.kube.client import Client
from podscaler.kube.config import Config
from podscaler.kube.transport import TransportError
from podscaler.kube.watch import PAGE_OBJECTS
from podscaler.kube.watch import Source as Followed

HPAS = "horizontalpodautoscalers"
SCALES_AT_ONCE = 8
FORGOTTEN = History(recommendations=(Recommendation(0, instants.ZERO),))
"""A history that holds nothing back: its only recommendation is older than any window."""


T = TypeVar("T", bound=Cached)


class _PageMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _PageMeta = _PageMeta()
    items: list[msgspec.Raw] | None = None


_PAGE = msgspec.json.Decoder(_Page)


class HistorySource(Protocol):
    """Where the controller keeps what it remembers of an autoscaler."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """What is remembered; None where that cannot be known. Raises StatusError."""
        ...


class NoHistory:
    """A controller that remembers in its own memory only."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """Nothing is known."""
        del client, autoscaler
        return None


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """A controller that keeps its history in the cluster.

    Attributes:
        namespace: where.
        clock: for the instant of the look.
    """

    namespace: str
    clock: Clock

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """What is kept; None where nothing is, or where we may not look. Raises StatusError."""
        key, now_ns, uid = key_of(autoscaler), self.clock.now_ns(), autoscaler.metadata.uid
        try:
            return await history_maps.load_history(client, key, now=now_ns, uid=uid, namespace=self.namespace)
        except StatusError as error:
            if error.code not in (0, 403) or isinstance(error, TransportError):
                raise
            return None


@dataclass(frozen=True, slots=True)
class Controller:
    """What is assumed of the controller: its settings, and where it keeps its history."""

    settings: Settings
    history: HistorySource


async def answer(config: Config, request: Request, controller: Controller, clock: Clock) -> Answer:
    """The explanation that is asked for, from the cluster of `config`.

    Raises UsageError where the cluster cannot be reached, or has no such autoscaler.
    """
    transport = await http_transport.connect(config, user_agent=f"podscaler/{__version__} explain")
    client = Client(transport, clock)
    try:
        return await Looker(client, controller, clock).answer(request, config.namespace)
    except TransportError as error:
        raise UsageError(f"cannot reach the API server {config.server} ({config.origin}): {error.cause}") from None
    finally:
        await client.close()


class Looker:
    """One look at one autoscaler.

    Args:
        client: the cluster.
        controller: what is assumed of it.
        clock: now.
    """

    def __init__(self, client: Client, controller: Controller, clock: Clock) -> None:
        self._client = client
        self._controller = controller
        self._clock = clock
        self._around = Surroundings.of(client, controller.settings, clock, metrics=None, rng=random.Random())
        self._memory = Memory()
        self._pods: Cache[CachedPod] = Cache()
        self._flags = controller.settings.decision
        self._observer = Observer(self._around, self._memory, self._pods, self._flags)

    async def answer(self, request: Request, default_namespace: str) -> Answer:
        """The explanation, and the comparison. Raises UsageError, StatusError."""
        all_there = await self._autoscalers(request.namespace or default_namespace)
        autoscaler = _the_one(all_there, request, request.namespace or default_namespace)
        await self._learn(autoscaler, all_there)
        observation = (await self._observer.observe(autoscaler)).observation
        past = await self._controller.history.find(self._client, autoscaler)
        source = Source.CLUSTER if past is not None else Source.CLUSTER_WITHOUT_HISTORY
        spec = autoscaler.spec
        facts = Facts(
            autoscaler.wire.spec,
            spec.namespace,
            spec.name,
            observation,
            past or FORGOTTEN,
            self._clock.now_ns(),
            self._flags,
        )
        decision = decide.decide(spec, observation, facts.past, facts.now, self._flags)
        explanation = explained.of_decision(decision, source)
        if not request.question:
            return Answer(explanation)
        other = await self._with_metrics(request, autoscaler, facts)
        again = explained.of_decision(explain_request.decide_again(request.question, other), source)
        shown = ",".join(str(each) for each in request.question)
        return Answer(explanation, comparison.of(explanation, again, shown))

    async def _with_metrics(self, request: Request, autoscaler: Autoscaler, facts: Facts) -> Facts:
        """The facts, with metrics too where the spec as it is needs none of them."""
        if any(answer is not None for answer in facts.observation.metrics):
            return facts
        wire, flags = what_if.apply(request.question, facts.wire, facts.flags)
        spec = specs.read(facts.namespace, facts.name, wire, flags.emulation)
        other = replace(autoscaler, wire=msgspec.structs.replace(autoscaler.wire, spec=wire), spec=spec)
        seen: Observation = (await self._observer.observe(other)).observation
        return replace(facts, observation=msgspec.structs.replace(facts.observation, metrics=seen.metrics))

    async def _autoscalers(self, namespace: str) -> list[Autoscaler]:
        source = following.autoscalers(self._flags.emulation)
        path = urls.group_version("autoscaling", "v2") + urls.path("namespaces", namespace, HPAS)
        return await self._list(replace(source, path=path))

    async def _learn(self, autoscaler: Autoscaler, all_there: Sequence[Autoscaler]) -> None:
        """What the controller's caches would hold: the pods of the target, the selectors of the neighbours."""
        for each in all_there:
            self._memory.register(key_of(each))
        own, *_ = await asyncio.gather(self._selector(autoscaler), *self._neighbours(autoscaler, all_there))
        if own is None:
            return
        namespace = autoscaler.metadata.namespace
        source = following.pods(self._flags.emulation)
        query = [("labelSelector", str(own))] if str(own) else []
        path = "/api/v1" + urls.path("namespaces", namespace, "pods")
        self._pods.replace(await self._list(replace(source, path=path, query=query)), "")

    def _neighbours(self, autoscaler: Autoscaler, all_there: Sequence[Autoscaler]) -> list[asyncio.Future[None]]:
        gate = asyncio.Semaphore(SCALES_AT_ONCE)
        others = [each for each in all_there if key_of(each) != key_of(autoscaler)]
        return [asyncio.ensure_future(self._learn_neighbour(each, gate)) for each in others]

    async def _learn_neighbour(self, neighbour: Autoscaler, gate: asyncio.Semaphore) -> None:
        async with gate:
            selector = await self._selector(neighbour)
        if selector is not None:
            self._memory.keep_selector(key_of(neighbour), selector)

    async def _selector(self, autoscaler: Autoscaler) -> Selector | None:
        """The pods that an autoscaler's target picks; None where that cannot be told (its own explanation says why)."""
        try:
            reference = autoscaler.wire.spec.scale_target_ref
            target = await self._around.targets.read(autoscaler.metadata.namespace, reference)
            text = target.scale.status.selector
            return selectors.parse(text) if text else None
        except (StatusError, SelectorError):
            return None

    async def _list(self, source: Followed[T]) -> list[T]:
        """All objects of a collection, page by page. Raises StatusError."""
        objects: list[T] = []
        token = ""
        while True:
            query = [*source.query, ("limit", str(PAGE_OBJECTS)), ("continue", token)]
            body = await self._client.get(source.path, subject=source.subject, query=query)
            try:
                page = _PAGE.decode(body)
                objects += [source.read(raw) for raw in page.items or ()]
            except ValueError as error:
                raise StatusError(f"a list of {source.subject} cannot be read: {error}", code=0) from None
            token = page.metadata.continue_
            if not token:
                return objects


def _the_one(all_there: Sequence[Autoscaler], request: Request, namespace: str) -> Autoscaler:
    """The autoscaler that is meant. Raises UsageError."""
    names = [each.metadata.name for each in all_there]
    meant = [each for each in all_there if request.name in (None, each.metadata.name)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UsageError(
            f"the namespace {namespace} has {len(names)} autoscalers, name one: {wording.listed(names, 10)}"
        )
    there = f"there are {wording.listed(names, 10)}" if names else "there are none"
    raise UsageError(f'no autoscaler "{request.name}" in the namespace {namespace}: {there}')
