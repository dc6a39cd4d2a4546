"""Follows the ConfigMaps that state metrics, and says what is wrong with them.

Run by `apis`. ConfigMaps without the label cost a look at their labels. After a watch that broke, what was known stays
until it is known better.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, cast

from podscaler.api.machinery import instants
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.metrics.custom.fields import listed, shown
from podscaler.controlplane.metrics.custom.index import MetricIndex, Owner
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.parsing import EntryContext, EntryProblem, ParsedEntry, parse_entry
from podscaler.controlplane.metrics.custom.series import Series
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Object, ObjectEvent, Registry

LABEL: Final = "podscaler.dev/metrics"
APIS: Final = ("custom", "external")
COMPONENT: Final = "metric-values"
REASON: Final = "InvalidMetric"
TOLD_MAX: Final = 10
"""How many faults of one version of a ConfigMap are told one by one."""

_EXPIRED = 410
_log = logging.getLogger(__name__)


class ConfigMaps:
    """See the module.

    Args:
        registry: where they are watched.
        index: what is kept up to date.
        kinds: what metrics may describe.
        clock: time of events.
    """

    def __init__(self, registry: Registry, index: MetricIndex, kinds: DescribableKinds, clock: Clock) -> None:
        self._registry = registry
        self._index = index
        self._kinds = kinds
        self._events = EventRecorder(registry, COMPONENT, clock)
        self._told: dict[Owner, frozenset[EntryProblem]] = {}

    async def follow(self) -> None:
        """Keep the index up to date until cancelled."""
        while True:
            changes = self._registry.watch("configmaps")
            self._forget_deleted()
            try:
                async for change in changes:
                    await self._apply(change)
            except StatusError as error:
                if error.code != _EXPIRED:
                    raise

    def _forget_deleted(self) -> None:
        """Drop what was deleted while nobody watched."""
        for owner in {*self._index.owners, *self._told}:
            if self._registry.find("configmaps", *owner) is None:
                self._forget(owner)

    def _forget(self, owner: Owner) -> None:
        self._index.put(owner, ())
        self._told.pop(owner, None)

    async def _apply(self, change: ObjectEvent) -> None:
        metadata = change.object["metadata"]
        owner = (metadata["namespace"], metadata["name"])
        api = (metadata.get("labels") or {}).get(LABEL)
        if change.type == "DELETED" or api is None:
            self._forget(owner)
            return
        series, faults = await self._read(change.object, api)
        self._index.put(owner, series)
        self._tell(change.object, owner, faults)

    async def _read(self, config_map: Object, api: str) -> tuple[Sequence[Series], Sequence[EntryProblem]]:
        if api not in APIS:
            text = f"{shown(api)} is no metrics API: it must be {' or '.join(APIS)}"
            return (), [EntryProblem(f"metadata.labels[{LABEL}]", text)]
        metadata = config_map["metadata"]
        place = EntryContext(
            api=cast(Literal["custom", "external"], api),
            namespace=metadata["namespace"],
            start_ns=instants.parse(metadata["creationTimestamp"]),
            kinds=self._kinds,
        )
        outcomes = [await _outcome(key, text, place) for key, text in (config_map.get("data") or {}).items()]
        faults = [fault for outcome in outcomes for fault in outcome.faults]
        if binary := sorted(config_map.get("binaryData") or {}):
            faults.append(EntryProblem("binaryData", f"{listed(binary)} cannot be read: metrics are texts, in data"))
        return [each for outcome in outcomes for each in outcome.series], faults

    def _tell(self, config_map: Object, owner: Owner, faults: Sequence[EntryProblem]) -> None:
        """Report what was not said about the version before."""
        news = [fault for fault in faults if fault not in self._told.get(owner, ())]
        self._told[owner] = frozenset(faults)
        if not faults:
            del self._told[owner]
        if len(news) > TOLD_MAX:
            rest = EntryProblem("data", f"{len(news) - TOLD_MAX + 1} more entries cannot be used")
            news = [*news[: TOLD_MAX - 1], rest]
        for fault in news:
            text = f"{fault.path}: {fault.text}"
            _log.warning("configmap %s/%s: %s", *owner, text)
            self._events.event(_reference(config_map), "Warning", REASON, text, field_path=fault.path)


async def _outcome(key: str, text: str, place: EntryContext) -> ParsedEntry:
    await asyncio.sleep(0)  # others may work between two entries: a ConfigMap may have a megabyte of them
    return parse_entry(key, text, place)


def _reference(config_map: Object) -> dict[str, Any]:
    """The ConfigMap without what it holds, which may be large and would wait in the recorder's buffer."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": config_map["metadata"]}
