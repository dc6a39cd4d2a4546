"""The rows of PodMetrics and NodeMetrics, where clients may leave out what they measure."""

from typing import Any

import pytest

from podscaler.api.kinds.core import metrics


@pytest.mark.parametrize(
    ("parts", "usages"),
    [
        pytest.param({"usage": {"cpu": "5m", "memory": "1Mi"}}, ["5m", "1Mi"], id="of a node"),
        pytest.param({"usage": None}, ["0", "0"], id="null"),
        pytest.param({"containers": [{"usage": {"cpu": "5m"}}, {"usage": {"cpu": "6m"}}]}, ["11m", "0"], id="added up"),
        pytest.param({"containers": [{"usage": None}, {}]}, ["0", "0"], id="null in containers"),
        pytest.param({"containers": None}, ["0", "0"], id="no containers"),
    ],
)
def test_usages(parts: Any, usages: list[str]) -> None:
    """What is not said counts as nothing."""
    row = metrics.NODE_METRICS.printer.row({"metadata": {"name": "a"}, "window": "15s", **parts}, 0)
    assert row == ["a", *usages, "15s"]
