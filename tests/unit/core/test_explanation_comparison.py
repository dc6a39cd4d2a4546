"""Two decisions side by side: the difference in one sentence, and the table."""

import pytest

from podscaler.core.model.history import History, Recommendation
from podscaler.core.model.observation import Failure, Observation
from podscaler.core.model.spec import Spec
from podscaler.explain import comparison, explained
from podscaler.explain.comparison import Comparison, ComparisonRow
from podscaler.explain.explanation_parts import TraceSource
from podscaler.testing.decisions import NOW, SECOND, decided, external_metric, observed, scaler, values

HELD = History((Recommendation(5, NOW - 250 * SECOND),))
FREE = History((Recommendation(5, NOW - 400 * SECOND),))


def wanting(target: str, **bounds: int) -> Spec:
    """A spec that wants 12 over `target`."""
    return scaler(external_metric(average=target), **bounds)


def compared(before: Spec, after: Spec, past: History = FREE, observation: Observation | None = None) -> Comparison:
    """The comparison of two specs over the same facts: five replicas, and a value of 12."""
    seen = observation or observed(values(12000), replicas=5)
    as_it_is = explained.of_decision(decided(before, seen, past))
    return comparison.of(as_it_is, explained.of_decision(decided(after, seen, past), TraceSource.WHAT_IF), "A=B")


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        pytest.param(compared(wanting("2"), wanting("2", least=2)), "goes from 5 to 6 either way", id="nothing"),
        pytest.param(
            compared(wanting("4"), wanting("6"), HELD), "wants 2 instead of 3, but stays at 5 either way", id="wants"
        ),
        pytest.param(compared(wanting("2"), wanting("1.5")), "goes from 5 to 8 instead of going to 6", id="farther"),
        pytest.param(compared(wanting("2.4"), wanting("2")), "goes from 5 to 6 instead of staying at 5", id="moves"),
        pytest.param(compared(wanting("2"), wanting("2.4")), "stays at 5 instead of going to 6", id="stays"),
        pytest.param(
            compared(wanting("2"), wanting("1"), observation=Observation(scale=Failure("gone"))),
            "does nothing either way",
            id="no scale",
        ),
    ],
)
def test_differences(found: Comparison, difference: str) -> None:
    """One sentence says what would have been different."""
    assert found.summary == f"With A=B default/web {difference}."


def test_rows() -> None:
    """Both outcomes, number by number."""
    assert compared(wanting("4"), wanting("2", most=7), HELD).rows == (
        ComparisonRow("bounds", "1 to 10", "1 to 7"),
        ComparisonRow("metrics[0] proposes", "3", "6"),
        ComparisonRow("wants", "3", "6"),
        ComparisonRow("stabilized", "5", "6"),
        ComparisonRow("limited", "5", "6"),
        ComparisonRow("result", "5 -> 5", "5 -> 6"),
        ComparisonRow("ending", "Stabilized", "Scaled"),
        ComparisonRow("next change", "to 3 in 50 s", "-"),
    )


def test_rows_where_only_one_looks_at_metrics() -> None:
    """A decision that went straight to a bound has no metrics to show."""
    found = compared(wanting("2", most=4), wanting("2"))
    assert [row for row in found.rows if row.label in ("metrics[0] proposes", "result")] == [
        ComparisonRow("metrics[0] proposes", "-", "6"),
        ComparisonRow("result", "5 -> 4", "5 -> 6"),
    ]


def test_text() -> None:
    """The sentences, then an aligned table."""
    found = compared(wanting("2"), wanting("2.4"))
    as_it_is = explained.of_decision(decided(wanting("2"), observed(values(12000), replicas=5), FREE))
    lines = comparison.text(found, as_it_is).splitlines()
    assert lines[:5] == [
        "With A=B default/web stays at 5 instead of going to 6.",
        f"As it is: {as_it_is.summary}",
        f"What if: {found.explanation.summary}",
        "",
        "                       as it is  what if",
    ]
    assert lines[5] == "  bounds               1 to 10   1 to 10"


def test_without_history() -> None:
    """Where history is unknown, neither sentence nor table tells of what it might do."""
    seen = observed(values(12000), replicas=5)
    before, after = (
        explained.of_decision(decided(wanting(target), seen, FREE), TraceSource.CLUSTER_WITHOUT_HISTORY)
        for target in ("4", "3")
    )
    found = comparison.of(before, after, "A=B")
    assert found.summary == "With A=B default/web goes from 5 to 4 instead of going to 3, history aside."
    assert [row.label for row in found.rows] == ["bounds", "metrics[0] proposes", "wants", "result", "ending"]
