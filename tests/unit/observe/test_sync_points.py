"""The marks of decisions: what the time line shows of a sync."""

import pytest

from podscaler.core.model.observation import Failure
from podscaler.observe import sync_points
from podscaler.observe.views import MarkKind
from podscaler.testing.decisions import decided, external_metric, observed, scaler, values

METRICS = (external_metric(average="1"), external_metric(average="1", selector={"matchLabels": {"of": "another"}}))


@pytest.mark.parametrize(
    ("measured", "kind"),
    [
        pytest.param(values(3_000), MarkKind.FAILED, id="nothing to change"),
        pytest.param(values(6_000), MarkKind.UP, id="the other metric scales up"),
    ],
)
def test_one_of_two_metrics_failed(measured: object, kind: MarkKind) -> None:
    """A change is a change, whatever failed beside it."""
    decision = decided(scaler(*METRICS), observed(measured, Failure("down"), replicas=3))  # type: ignore[arg-type] # one of its types
    assert sync_points.mark(decision, is_carried_out=True).kind is kind
