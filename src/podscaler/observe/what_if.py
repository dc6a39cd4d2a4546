"""Decides kept syncs again: to explain them, and with another spec, now and over the recorded time.

`podscaler.observe.live_cluster` calls it in a thread: every function computes for up to seconds and waits for nothing.
The explanations are those of `podscaler explain --recording` for the same line. Over time each sync keeps the facts
that were recorded, also the replicas (open loop): that other replicas would have changed the metrics is not considered.
The recommendations of earlier syncs are those with the other spec; the scale events are the recorded ones.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import yaml

from podscaler.api.typed import recording
from podscaler.base.errors import UsageError
from podscaler.core.decision import Decision
from podscaler.core.model.history import History
from podscaler.core.replay import RecordedSync, Replay
from podscaler.explain import comparison, decide_again, explained, verdict, what_if
from podscaler.explain.decide_again import DecisionFacts
from podscaler.explain.explained import Explanation
from podscaler.explain.explanation_parts import TraceSource
from podscaler.explain.what_if import Assignment
from podscaler.observe.kept_syncs import KeptSync
from podscaler.observe.views import DecisionView, WhatIfNow, WhatIfOverTime, WhatIfView

SYNCS_MAX = 2000
ASSUMPTION = (
    "open loop: each recorded sync is decided again with the metrics, pods and replicas that were recorded; that other "
    "replicas would have changed them is not considered, and syncs of which no line is kept are left out"
)


def explain(kept_sync: KeptSync) -> DecisionView:
    """The explanation of a kept sync. Raises RecordingError if its line cannot be used, which is a bug."""
    _, _, decision = _decide(kept_sync)
    explanation = explained.of_decision(decision)
    return DecisionView(_json_data(explanation), explained.text(explanation))


def parse(texts: Sequence[str]) -> tuple[Assignment, ...]:
    """The assignments of texts such as `maxReplicas=20`. Raises UsageError."""
    if not texts:
        raise UsageError("what-if needs assignments such as maxReplicas=20")
    return tuple([assignment for text in texts for assignment in what_if.parse(text)])


def compare(assignments: tuple[Assignment, ...], latest: KeptSync, kept_syncs: Sequence[KeptSync]) -> WhatIfView:
    """The what-if, of the latest sync and over time.

    Args:
        assignments: the changes of the spec and of flags.
        latest: the newest sync.
        kept_syncs: the syncs of the time range, oldest first; the newest SYNCS_MAX of them are used.

    Raises:
        UsageError: an assignment cannot be used.
        RecordingError: a line cannot be used, which is a bug.
    """
    replayer, sync, decision = _decide(latest)
    facts = decide_again.recorded_facts(sync, replayer.settings)
    before = explained.of_decision(decision)
    after = explained.of_decision(decide_again.decide_again(assignments, facts), TraceSource.WHAT_IF)
    compared = comparison.of(before, after, ",".join(str(assignment) for assignment in assignments))
    rows = [row for row in compared.rows if row.as_it_is != row.what_if]
    comparison_now = WhatIfNow(
        before=_json_data(before),
        after=_json_data(after),
        differences=tuple([f"{row.label}: {row.as_it_is}, with the change {row.what_if}" for row in rows]),
        text=comparison.full_text(compared, before),
    )
    return WhatIfView(comparison_now, _over_time(assignments, kept_syncs[-SYNCS_MAX:]), patch(assignments, facts))


def patch(assignments: tuple[Assignment, ...], facts: DecisionFacts) -> str:
    """A merge patch in YAML that makes the changes of the spec; without those of flags. Raises UsageError."""
    unchanged_spec, _ = what_if.apply((), facts.wire, facts.flags)
    changed_spec, _ = what_if.apply(assignments, facts.wire, facts.flags)
    before, after = msgspec.to_builtins(unchanged_spec), msgspec.to_builtins(changed_spec)
    changed_fields = {name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)}
    return str(yaml.safe_dump({"spec": changed_fields}, sort_keys=False, allow_unicode=True)) if changed_fields else ""


def _over_time(assignments: tuple[Assignment, ...], kept_syncs: Sequence[KeptSync]) -> WhatIfOverTime:
    """Each sync decided again; one about which the assignments cannot be decided has None."""
    at: list[int] = []
    limited: list[int | None] = []
    carried_history: History | None = None
    for kept_sync in kept_syncs:
        replayer, sync = _parse_sync(kept_sync)
        facts = decide_again.recorded_facts(sync, replayer.settings)
        facts = replace(facts, prior_history=_carried_on(sync.prior_history, carried_history))
        at.append(kept_sync.mark.at)
        try:
            decision = decide_again.decide_again(assignments, facts)
        except UsageError:  # the spec of that time lacks what is assigned, or the metric was not read
            limited.append(None)
            continue
        carried_history = decision.history
        limited.append(verdict.of(decision.trace).desired)
    return WhatIfOverTime(tuple(at), tuple(limited), ASSUMPTION)


def _carried_on(recorded: History, carried: History | None) -> History:
    """The recorded history with the recommendations of the decisions with the other spec."""
    if carried is None:
        return recorded
    return msgspec.structs.replace(recorded, recommendations=carried.recommendations)


def _parse_sync(kept_sync: KeptSync) -> tuple[Replay, RecordedSync]:
    """The recorded sync, and the Replay with the settings of its recording. Raises RecordingError."""
    replayer = Replay(recording.read_header(kept_sync.header))
    sync = replayer.parse(kept_sync.line())
    assert sync is not None, "a kept line is that of a sync"
    return replayer, sync


def _decide(kept_sync: KeptSync) -> tuple[Replay, RecordedSync, Decision]:
    """As `_parse_sync`, with the decision about the sync, which equals the recorded one."""
    replayer, sync = _parse_sync(kept_sync)
    return replayer, sync, replayer.decide(sync)


def _json_data(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON-ready data."""
    data: dict[str, Any] = json.loads(msgspec.json.encode(explanation))
    return data
