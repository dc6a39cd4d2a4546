"""The fake Prometheus says what it does not evaluate; the contract tests say what it does."""

import pytest

from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.testing.prometheus import FakePrometheus


@pytest.mark.parametrize(
    ("promql", "message"),
    [
        pytest.param("month()", "the fake has no function month without arguments", id="a function without arguments"),
        pytest.param("deriv(up[5m])", "the fake has no function deriv", id="a function"),
        pytest.param("up % 2", "the fake has no operator % of these values", id="a vector and a number"),
        pytest.param("2 ^ 3", "the fake has no operator ^ of these values", id="two numbers"),
        pytest.param("up % up", "the fake has no operator % of these values", id="two vectors"),
        pytest.param("2 > 1", "comparisons between scalars must use BOOL modifier", id="Prometheus refuses it too"),
    ],
)
async def test_what_is_not_supported(promql: str, message: str) -> None:
    """The query fails as one that Prometheus rejects, with the reason."""
    database = FakePrometheus()
    database.add("up", 1)
    with pytest.raises(PrometheusError) as rejected:
        await database.query(promql)
    assert message in str(rejected.value)


@pytest.mark.parametrize(("promql", "value"), [("time()", 1_767_225_600.0), ("2 > bool 1", 1.0), ("2 - 3", -1.0)])
async def test_scalars(promql: str, value: float) -> None:
    """The time is the only function without arguments; comparisons of numbers are 0 or 1."""
    result = await FakePrometheus().query(promql)
    assert [sample.value for sample in result.samples] == [value]
