"""Histories in recordings: what is written is read again."""

import pytest

from podscaler.api.typed import recording
from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core import replay
from podscaler.core.model.history import EMPTY, History, LastProposal, Recommendation, ScaleEvent
from podscaler.testing.decisions import NOW

FULL = History(
    (Recommendation(3, NOW + 1), Recommendation(5, NOW)),
    (ScaleEvent(2, NOW, is_outdated=True), ScaleEvent(4, NOW + 7)),
    (ScaleEvent(1, NOW + 2),),
    (LastProposal("m", 3, NOW + 4, MetricValueStatus(average_value="7")),),
    NOW + 9,
)


@pytest.mark.parametrize("history", [EMPTY, FULL], ids=["empty", "full"])
def test_round_trip(history: History) -> None:
    """Instants keep their nanoseconds, slots their order, outdated events their mark."""
    assert replay.read_history(replay.write_history(history)) == history


def test_a_time_that_cannot_be_read() -> None:
    """The text is named."""
    with pytest.raises(ValueError, match="'soon' is not a time"):
        replay.read_history(recording.RecordedHistory((recording.RecordedRecommendation(1, "soon"),)))
