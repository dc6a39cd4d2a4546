"""All metrics together: the largest wins, failures forbid conclusions.

Source: docs/spec/decision.md 3.2 (Loop), 3.3 (Failure of one metric), 14 (Test vectors). Each metric is an External one
whose value over its target is the proposal.
"""

import pytest

from podscaler.core import combine
from podscaler.core.calculation.calculation_types import Tolerance
from podscaler.core.combine import MetricsEvaluation
from podscaler.core.model.observation import IncompleteObservation, Measurement, Scale
from podscaler.core.model.settings import DEFAULT
from podscaler.core.model.trace import Combination
from podscaler.testing.decisions import DOWN, NOW, external_metric, observed, resource, scaler, using, values

TOLERANCE = Tolerance(0.1, 0.1)


def combined(*proposals: int | None, replicas: int = 5) -> MetricsEvaluation:
    """Metrics that propose these counts (None: failing)."""
    spec = scaler(*[external_metric(average="1") for _ in proposals])
    answers: list[Measurement] = [DOWN if each is None else values(each * 1000) for each in proposals]
    observation = observed(*answers, replicas=replicas)
    assert isinstance(observation.scale, Scale)
    return combine.evaluate(spec, observation.scale, observation, now_ns=NOW, tolerance=TOLERANCE, settings=DEFAULT)


@pytest.mark.parametrize(
    ("proposals", "proposal", "winner", "failed"),
    [
        ((3, 8, 5), 8, 1, ()),
        ((8, 8), 8, 0, ()),
        ((0, 0), 0, 1, ()),
        ((0, 3), 3, 1, ()),
        ((None, 8), 8, 1, (0,)),
        ((None, 5), 5, 1, (0,)),
        ((None, 3), None, 1, (0,)),
        ((None, None), None, None, (0, 1)),
        ((9, None, 7), 9, 0, (1,)),
        ((None,), None, None, (0,)),
    ],
    ids=[
        "largest",
        "first of equals",
        "a later zero replaces",
        "zero is replaced",
        "partial failure, up",
        "partial failure, no change",
        "partial failure, down",
        "all fail",
        "one of three fails",
        "the only one fails",
    ],
)
def test_conclusion(
    proposals: tuple[int | None, ...], proposal: int | None, winner: int | None, failed: tuple[int, ...]
) -> None:
    """Partial failures still allow up and no change, but never down (5 replicas)."""
    found = combined(*proposals).combination
    assert (found.proposal, found.winner, found.failed) == (proposal, winner, failed)


def test_error_names_the_first_failure() -> None:
    """The error counts failures and repeats the first with its prefixes; every failure has its event."""
    found = combined(None, 8, None)
    failure = found.failures[0]
    assert found.combination.error == f"invalid metrics (2 invalid out of 3), first error is: {failure.error}"
    assert len(found.failures) == 2


def test_statuses_keep_their_places() -> None:
    """A failed metric leaves an empty entry in its place."""
    assert [status.type for status in combined(None, 8).statuses] == ["", "External"]


@pytest.mark.parametrize(
    ("first", "second", "is_spec_error"),
    [({"type": "Magic"}, external_metric(average="1"), True), (external_metric(average="1"), {"type": "Magic"}, False)],
)
def test_spec_errors(first: dict[str, object], second: dict[str, object], is_spec_error: bool) -> None:
    """An unknown type is the user's mistake where it is the first failure."""
    spec = scaler(first, second)
    observation = observed(DOWN, DOWN)
    assert isinstance(observation.scale, Scale)
    found = combine.evaluate(spec, observation.scale, observation, now_ns=NOW, tolerance=TOLERANCE, settings=DEFAULT)
    assert found.is_spec_error is is_spec_error


def test_missing_answer_is_named() -> None:
    """An observation without an answer that is needed says which."""
    spec = scaler(resource(utilization=50), resource("memory", average="1"))
    observation = observed(using(3, 500))
    assert isinstance(observation.scale, Scale)
    with pytest.raises(IncompleteObservation, match=r"^metrics\[1\]: an answer is needed$"):
        combine.evaluate(spec, observation.scale, observation, now_ns=NOW, tolerance=TOLERANCE, settings=DEFAULT)


def test_no_pods_to_tell() -> None:
    """Where the pods of the target cannot be told, no metric is looked at."""
    spec = scaler()
    observation = observed(selector="")
    assert isinstance(observation.scale, Scale)
    found = combine.evaluate(spec, observation.scale, observation, now_ns=NOW, tolerance=TOLERANCE, settings=DEFAULT)
    assert (found.combination, found.results, found.statuses) == (
        Combination(None, None, error="selector is required"),
        (),
        (),
    )
