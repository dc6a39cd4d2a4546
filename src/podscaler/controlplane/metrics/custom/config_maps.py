"""Watches the ConfigMaps that define metrics, updates the index, and reports invalid entries as Events.

`metrics.custom.apis` runs it. A ConfigMap defines metrics if it has the label `podscaler.dev/metrics` with the value
`custom` or `external`; each key of its data is one entry (`parsing`). While the watch restarts, the index is kept.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, cast

from podscaler.api.machinery import instants
from podscaler.base.clock import Clock
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
"""Source and reason of the Events."""
REPORTED_MAX: Final = 9
"""How many problems of one version of a ConfigMap are reported one by one, before a last one that counts the rest."""

_log = logging.getLogger(__name__)


class ConfigMaps:
    """Keeps the series of all ConfigMaps with the label in an index.

    Args:
        registry: where ConfigMaps are watched.
        index: the index to update.
        kinds: the kinds that metrics may describe.
        clock: the time of Events.
    """

    def __init__(self, registry: Registry, index: MetricIndex, kinds: DescribableKinds, clock: Clock) -> None:
        self._registry = registry
        self._index = index
        self._kinds = kinds
        self._events = EventRecorder(registry, COMPONENT, clock)
        self._reported: dict[Owner, frozenset[EntryProblem]] = {}
        """The problems of the newest version of each ConfigMap that has some."""

    async def run(self) -> None:
        """Watch ConfigMaps until cancelled."""
        async for event in self._registry.watch_renewed("configmaps", on_watch=self._forget_deleted):
            await self._update_metrics(event)

    def _forget_deleted(self) -> None:
        """Remove ConfigMaps that were deleted between two watches."""
        for owner in {*self._index.owners, *self._reported}:
            if self._registry.find("configmaps", *owner) is None:
                self._forget(owner)

    def _forget(self, owner: Owner) -> None:
        """Remove the series and the problems of a ConfigMap."""
        self._index.put(owner, ())
        self._reported.pop(owner, None)

    async def _update_metrics(self, event: ObjectEvent) -> None:
        """Read a changed ConfigMap again, or forget it if it has no label any more."""
        metadata = event.object["metadata"]
        owner = (metadata["namespace"], metadata["name"])
        api = (metadata.get("labels") or {}).get(LABEL)
        if event.type == "DELETED" or api is None:
            self._forget(owner)
            return
        series, problems = await self._read_metrics(event.object, api)
        self._index.put(owner, series)
        self._report_new_problems(event.object, owner, problems)

    async def _read_metrics(self, config_map: Object, api: str) -> tuple[Sequence[Series], Sequence[EntryProblem]]:
        """The series of a ConfigMap, and what is wrong with its other entries."""
        if api not in APIS:
            reason = f"{shown(api)} is no metrics API: it must be {' or '.join(APIS)}"
            return (), [EntryProblem(f"metadata.labels[{LABEL}]", reason)]
        metadata = config_map["metadata"]
        context = EntryContext(
            api=cast(Literal["custom", "external"], api),
            namespace=metadata["namespace"],
            start_ns=instants.parse(metadata["creationTimestamp"]),
            kinds=self._kinds,
        )
        config_map_data = config_map.get("data") or {}
        parsed_entries = [
            await _yield_and_parse(key, entry_text, context) for key, entry_text in config_map_data.items()
        ]
        problems = [problem for parsed_entry in parsed_entries for problem in parsed_entry.problems]
        if binary := sorted(config_map.get("binaryData") or {}):
            problems.append(EntryProblem("binaryData", f"{listed(binary)} cannot be read: metrics are texts, in data"))
        return [series for parsed_entry in parsed_entries for series in parsed_entry.series], problems

    def _report_new_problems(self, config_map: Object, owner: Owner, problems: Sequence[EntryProblem]) -> None:
        """Report the problems that the previous version did not have."""
        new_problems = [problem for problem in problems if problem not in self._reported.get(owner, ())]
        if problems:
            self._reported[owner] = frozenset(problems)
        else:
            self._reported.pop(owner, None)
        if len(new_problems) > REPORTED_MAX + 1:  # a single further one is reported itself
            remainder = EntryProblem("data", f"{len(new_problems) - REPORTED_MAX} more entries cannot be used")
            new_problems = [*new_problems[:REPORTED_MAX], remainder]
        for problem in new_problems:
            message = f"{problem.path}: {problem.text}"
            _log.warning("configmap %s/%s: %s", *owner, message)
            self._events.event(_event_reference(config_map), "Warning", REASON, message, field_path=problem.path)


async def _yield_and_parse(key: str, entry_text: str, context: EntryContext) -> ParsedEntry:
    """The parsed entry, after other tasks ran: a ConfigMap may have a megabyte of entries."""
    await asyncio.sleep(0)
    return parse_entry(key, entry_text, context)


def _event_reference(config_map: Object) -> dict[str, Any]:
    """The ConfigMap without its data, which may be large and would be kept in the recorder's buffer."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": config_map["metadata"]}
