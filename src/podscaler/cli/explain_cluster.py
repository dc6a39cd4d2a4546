"""The explanation of an autoscaler as a cluster shows it now, by the controller's own way of looking. Writes nothing.

Called by `podscaler.cli.explain`. What earlier syncs left (recommendations, changes) is the controller's; a
HistorySource tells it where the controller keeps it in the cluster.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from podscaler import __version__
from podscaler.api import instants, selectors
from podscaler.api.selectors import Selector, SelectorError
from podscaler.cli import all_pages, explain_autoscalers, explain_request
from podscaler.cli.explain_autoscalers import Autoscalers
from podscaler.cli.explain_care import Care
from podscaler.cli.explain_request import Answer, Facts, Request
from podscaler.clock import Clock
from podscaler.controller import following, handover, history_maps
from podscaler.controller.following import Autoscaler, CachedPod
from podscaler.controller.leading import holding, lease
from podscaler.controller.leading.lease import Lease
from podscaler.controller.memory import Memory
from podscaler.controller.observe import Observer
from podscaler.controller.settings import Settings
from podscaler.controller.surroundings import Surroundings
from podscaler.core import decide, what_if
from podscaler.core import spec as specs
from podscaler.core.explanation import comparison, explained
from podscaler.core.explanation.explained import Explanation
from podscaler.core.explanation.source import Source
from podscaler.core.history import History, Recommendation
from podscaler.core.model import Observation
from podscaler.errors import StatusError, UsageError
from podscaler.kube import http_transport, urls
from podscaler.kube.cache import Cache
from podscaler.kube.client import Client
from podscaler.kube.config import Config
from podscaler.kube.transport import TransportError
from podscaler.kube.watch import Source as Followed

log = logging.getLogger(__name__)

SCALES_AT_ONCE = 8
FORGOTTEN = History(recommendations=(Recommendation(0, instants.ZERO),))
"""A history that holds nothing back: its only recommendation is older than any window."""


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
        key, now_ns, uid = autoscaler.key, self.clock.now_ns(), autoscaler.metadata.uid
        try:
            kept = await history_maps.load_history(client, key, now=now_ns, uid=uid, namespace=self.namespace)
        except StatusError as error:
            if error.code not in (0, 403) or isinstance(error, TransportError):
                raise
            return None
        if kept is None and (left := handover.find_history(autoscaler.metadata, now_ns)) is not None:
            return left.history
        return kept


@dataclass(frozen=True, slots=True)
class Controller:
    """What is assumed of the controller: its settings, where it keeps its history, and its Leases.

    Attributes:
        leases: their namespace, and the name of the election.
    """

    settings: Settings
    history: HistorySource
    leases: tuple[str, str] = (lease.NAMESPACE, lease.NAME)


async def answer(config: Config, request: Request, controller: Controller, clock: Clock) -> Answer:
    """The explanation that is asked for, from the cluster of `config`.

    Raises UsageError where the cluster cannot be reached, or has no such autoscaler.
    """
    transport = await http_transport.connect(config, user_agent=f"podscaler/{__version__} explain")
    client = Client(transport, clock)
    try:
        namespace = request.namespace or config.namespace
        rules = controller.settings.decision.emulation
        there = await explain_autoscalers.read(client, namespace, request.kind, rules)
        return await Looker(client, controller, clock, there).answer(request, there.the_one(request, namespace))
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
        there: the autoscalers of the namespace.
    """

    def __init__(self, client: Client, controller: Controller, clock: Clock, there: Autoscalers) -> None:
        self._client = client
        self._controller = controller
        self._clock = clock
        self._there = there
        self._memory = Memory()
        self._pods: Cache[CachedPod] = Cache()
        self._flags = controller.settings.decision
        kinds = controller.settings.kinds
        around = Surroundings.of(client, controller.settings, clock, metrics=None, rng=random.Random())
        self._around = replace(around, rivals=lambda autoscaler: there.rivals(autoscaler, kinds))
        self._observer = Observer(self._around, self._memory, self._pods, self._flags)

    async def answer(self, request: Request, autoscaler: Autoscaler) -> Answer:
        """The explanation, and the comparison. Raises UsageError, StatusError."""
        await self._learn(autoscaler, self._there.followed_with(autoscaler, self._controller.settings.kinds))
        observation = (await self._observer.observe(autoscaler)).observation
        past = await self._controller.history.find(self._client, autoscaler)
        source = Source.CLUSTER if past is not None else Source.CLUSTER_WITHOUT_HISTORY
        now, flags = self._clock.now_ns(), self._flags
        facts = Facts(autoscaler.wire.spec, *autoscaler.key, observation, past or FORGOTTEN, now, flags)
        care = await self._care(autoscaler, now)
        decision = decide.decide(autoscaler.spec, observation, facts.past, now, flags)
        explanation = _left_alone(explained.of_decision(decision, source), care.waits)
        if not request.question:
            return Answer(explanation, care=care)
        other = await self._with_metrics(request, autoscaler, facts)
        again = explained.of_decision(explain_request.decide_again(request.question, other), source)
        shown = ",".join(str(each) for each in request.question)
        return Answer(explanation, comparison.of(explanation, again, shown), care)

    async def _care(self, autoscaler: Autoscaler, now: int) -> Care:
        """Who looks after it; Leases that may not be read tell nothing. Raises TransportError."""
        namespace, election = self._controller.leases
        held = None
        try:
            held = holding.find(await self._leases(namespace, election), election, autoscaler.key, now=now)
        except TransportError:
            raise
        except StatusError as error:
            log.info("who holds the Lease for it is not known: %s", error)
        written = self._there.writes.get(autoscaler.metadata.uid)
        return Care(now, self._there.obstacle(autoscaler), written, held, namespace)

    async def _leases(self, namespace: str, election: str) -> list[Lease]:
        query = [("labelSelector", f"{lease.ELECTION}={election}")]
        source = Followed(lease.path(namespace), lease.RESOURCE, lease.read, query)
        return await all_pages.read(self._client, source)

    async def _with_metrics(self, request: Request, autoscaler: Autoscaler, facts: Facts) -> Facts:
        """The facts, with metrics too where the spec as it is needs none of them."""
        if any(answer is not None for answer in facts.observation.metrics):
            return facts
        wire, flags = what_if.apply(request.question, facts.wire, facts.flags)
        spec = specs.read(facts.namespace, facts.name, wire, flags.emulation)
        other = replace(autoscaler, wire=msgspec.structs.replace(autoscaler.wire, spec=wire), spec=spec)
        seen: Observation = (await self._observer.observe(other)).observation
        return replace(facts, observation=msgspec.structs.replace(facts.observation, metrics=seen.metrics))

    async def _learn(self, autoscaler: Autoscaler, all_there: Sequence[Autoscaler]) -> None:
        """What the controller's caches would hold: the pods of the target, the selectors of the neighbours."""
        for each in all_there:
            self._memory.register(each.key)
        own, *_ = await asyncio.gather(self._selector(autoscaler), *self._neighbours(autoscaler, all_there))
        if own is None:
            return
        namespace = autoscaler.metadata.namespace
        source = following.pods(self._flags.emulation)
        query = [("labelSelector", str(own))] if str(own) else []
        path = "/api/v1" + urls.path("namespaces", namespace, "pods")
        self._pods.replace(await all_pages.read(self._client, replace(source, path=path, query=query)), "")

    def _neighbours(self, autoscaler: Autoscaler, all_there: Sequence[Autoscaler]) -> list[asyncio.Future[None]]:
        gate = asyncio.Semaphore(SCALES_AT_ONCE)
        others = [each for each in all_there if each.key != autoscaler.key]
        return [asyncio.ensure_future(self._learn_neighbour(each, gate)) for each in others]

    async def _learn_neighbour(self, neighbour: Autoscaler, gate: asyncio.Semaphore) -> None:
        async with gate:
            selector = await self._selector(neighbour)
        if selector is not None:
            self._memory.keep_selector(neighbour.key, selector)

    async def _selector(self, autoscaler: Autoscaler) -> Selector | None:
        """The pods that an autoscaler's target picks; None where that cannot be told (its own explanation says why)."""
        try:
            reference = autoscaler.wire.spec.scale_target_ref
            target = await self._around.targets.read(autoscaler.metadata.namespace, reference)
            text = target.scale.status.selector
            return selectors.parse(text) if text else None
        except (StatusError, SelectorError):
            return None


def _left_alone(explanation: Explanation, waits: str) -> Explanation:
    """The explanation of an autoscaler about which nothing is done for now, where `waits` says why."""
    if not waits:
        return explanation
    summary = f"{explanation.autoscaler} is left alone for now ({waits}); else: {explanation.summary}"
    return msgspec.structs.replace(explanation, summary=summary)
