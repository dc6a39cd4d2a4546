"""Explanations of all recorded decisions: none is impossible, JSON loses nothing, and foretold changes do come true."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sampling
from podscaler.api.typed import recording
from podscaler.core import decide
from podscaler.core.decision import Decision
from podscaler.core.model import trace
from podscaler.core.model.observation import Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.replay import RecordedSync, Replay
from podscaler.explain import explained
from podscaler.explain.explained import Explanation
from podscaler.testing.decisions import SECOND

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
NAMES = sorted(path.name.partition(".")[0] for path in VECTORS.glob("*.recording.jsonl.gz"))


def decided(name: str, every: int = 1) -> Iterator[tuple[RecordedSync, Decision, Settings]]:
    """The syncs of a recording with their decisions; of `every` so many the first."""
    with gzip.open(VECTORS / f"{name}.recording.jsonl.gz") as lines:
        replay = Replay(recording.read_header(next(lines)))
        for number, line in enumerate(lines):
            sync = replay.parse(line)
            if sync is not None:
                decision = replay.decide(sync)
                if number % every == 0:
                    yield sync, decision, replay.settings


@pytest.mark.parametrize("name", sampling.one_in(3, NAMES))
def test_every_decision_has_an_explanation(name: str) -> None:
    """The sentence names the autoscaler, and the verdict has the counts that were decided."""
    for sync, decision, _ in decided(name):
        explanation = explained.of_decision(decision)
        verdict = explanation.verdict
        assert explanation.summary.startswith(f"{sync.spec.key} ")
        assert verdict.is_change == (decision.replicas is not None)
        if decision.replicas is not None:
            assert verdict.desired == decision.replicas
        assert explained.text(explanation).startswith(explanation.summary)


@pytest.mark.parametrize("name", sampling.one_in(3, NAMES))
def test_a_trace_survives_json(name: str) -> None:
    """A trace that was written as JSON is the same when it is read, infinite ratios included."""
    for _, decision, _ in decided(name, every=5):
        value = json.loads(msgspec.json.encode(decision.trace))
        assert repr(trace.read(value)) == repr(decision.trace)


def following(sync: RecordedSync, decision: Decision, at: int, flags: Settings) -> Decision:
    """The decision of a sync at `at` that sees the same metrics, and the scale as it was written."""
    scale = sync.observation.scale
    assert isinstance(scale, Scale)
    if decision.replicas is not None:
        scale = msgspec.structs.replace(scale, replicas=decision.replicas)
    seen: Observation = msgspec.structs.replace(sync.observation, scale=scale, status=decision.status)
    return decide.decide(sync.spec, seen, decision.history, at, flags)


def check_outlook(sync: RecordedSync, decision: Decision, explanation: Explanation, flags: Settings) -> bool:
    """Compare a foretold change with the decisions before and at its instant; False where metrics want something else.

    Before it nothing changes; at its instant the count becomes what was foretold.
    """
    change = explanation.next_change
    assert change is not None
    step = decision.trace.stabilization
    is_at_next_sync = change.at == sync.now_ns
    at = sync.now_ns + 1 if is_at_next_sync else change.at
    later = following(sync, decision, at, flags)
    if step is None or later.trace.stabilization is None or later.trace.stabilization.proposal != step.proposal:
        return False
    current = later.trace.current_replicas
    if not is_at_next_sync and at - 1 > sync.now_ns:
        assert following(sync, decision, at - 1, flags).trace.desired == current
    assert later.trace.desired == change.replicas
    return True


def check_standstill(sync: RecordedSync, decision: Decision, flags: Settings) -> bool:
    """That two hours later the count is still the same; False where metrics want something else then."""
    later = following(sync, decision, sync.now_ns + 7200 * SECOND, flags)
    step, then = decision.trace.stabilization, later.trace.stabilization
    if step is None or then is None or then.proposal != step.proposal:
        return False
    assert later.trace.desired == later.trace.current_replicas
    return True


@pytest.mark.parametrize("name", sampling.one_in(3, NAMES))
def test_foretold_changes_come_true(name: str) -> None:
    """If the metrics go on asking for the same, a count changes when and as the explanation says, or not at all."""
    checked = 0
    for sync, decision, flags in decided(name, every=3):
        explanation = explained.of_decision(decision)
        if explanation.verdict.write_error or decision.trace.is_lifted:
            continue
        if explanation.next_change is not None:
            checked += check_outlook(sync, decision, explanation, flags)
        elif explanation.verdict.wanted != explanation.verdict.desired:
            checked += check_standstill(sync, decision, flags)
    assert checked > 0
