"""The lines of a recording: when they tell what was remembered before, and clocks that are set back."""

from typing import Any

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.api.typed import recording
from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.controller.recording.record_lines import RecordLines
from podscaler.controller.recording.recording import SyncRecord, SyncsEnd
from podscaler.core.model.history import EMPTY, History, Recommendation
from podscaler.testing.decisions import NOW, decided, observed, scaler, using

KEY = ("default", "web")
OTHER = History((Recommendation(7, NOW),))


def _sync(past: History = EMPTY, at_ns: int = NOW) -> SyncRecord:
    spec = scaler()
    observation = observed(using(3, 500))
    wire = HorizontalPodAutoscaler(metadata=ObjectMeta(name="web", namespace="default"))
    return SyncRecord(
        at_ns,
        Autoscaler(wire.metadata, wire, spec),
        ObservedSync(observation, None),
        past,
        decided(spec, observation, past),
    )


def _read(text: bytes) -> list[Any]:
    return [recording.read_line(line) for line in text.splitlines()]


def test_history_is_told_where_a_reader_cannot_know_it() -> None:
    """At the first line if there is any, not while each line goes on from the one before, again after a lost one."""
    lines = RecordLines()
    first = _sync(OTHER)
    second = _sync(first.decision.history)
    lost = _sync(second.decision.history)
    after = _sync(lost.decision.history)
    told = [_read(lines.encode(sync))[0].history is not None for sync in (first, second, after)]
    assert told == [True, False, True]


def test_a_fresh_file_knows_nothing() -> None:
    """After the file changed, the history is told again."""
    lines = RecordLines()
    first = _sync()
    second = _sync(first.decision.history)
    plain = _read(lines.encode(first))[0].history
    lines.restart()
    assert (plain, _read(lines.encode(second))[0].history is None) == (None, False)


def test_the_end_of_an_autoscaler() -> None:
    """Its successor begins without a history, and need not say so."""
    lines = RecordLines()
    lines.encode(_sync())
    assert _read(lines.encode(SyncsEnd(NOW, KEY)))[0].deleted == "default/web"
    assert _read(lines.encode(_sync()))[0].history is None


def test_a_clock_that_is_set_back() -> None:
    """Lines of one autoscaler are in time order: it ends for the reader, and begins anew with its history."""
    lines = RecordLines()
    first = _sync()
    lines.encode(first)
    end, sync = _read(lines.encode(_sync(first.decision.history, NOW - 1)))
    assert (end.deleted, end.time, sync.history is not None) == ("default/web", sync.time, True)
