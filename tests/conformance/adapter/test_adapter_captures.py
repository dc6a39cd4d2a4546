"""Our adapter answers as the real prometheus-adapter did, on the same configuration and the same values.

`record_adapter.py` made the captures with a real Prometheus and a real prometheus-adapter.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from adapter_replay import BATCHED, DIRECT, answers_of_ours, recorded_kubernetes, recorded_prometheus

from podscaler.adapter.assembly import AdapterSettings

HERE = Path(__file__).parent
CAPTURES = {name: json.loads((HERE / f"{name}.json").read_text()) for name in ("custom", "external", "resource")}
DIFFERENCES = {
    "/apis/custom.metrics.k8s.io": "the library serves v1beta2, and does not list it",
    "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/web-2/http_requests_per_second"
    "?metricLabelSelector=verb!%3DGET,verb": "the library responds with 500 where a metric selector has !=",
}
"""Paths whose answers differ, with the reason."""


@pytest.mark.parametrize("settings", [DIRECT, BATCHED], ids=["direct", "batched"])
@pytest.mark.parametrize("name", CAPTURES)
async def test_answers_are_equal(name: str, settings: AdapterSettings) -> None:
    """Values, selectors, errors and discovery are those of prometheus-adapter, but for the known differences."""
    capture: dict[str, Any] = CAPTURES[name]
    expected = capture["answers"]
    paths = [each["path"] for each in expected]
    lister, prometheus = recorded_kubernetes(capture), recorded_prometheus(capture)
    found = await answers_of_ours(capture["config"], lister, prometheus, paths, settings)
    differing = [each["path"] for each, ours in zip(expected, found, strict=True) if each != ours]
    assert differing == [path for path in paths if path in DIFFERENCES]


def test_enough_is_captured() -> None:
    """The table has at least 60 requests besides the known differences."""
    assert sum(len(capture["answers"]) for capture in CAPTURES.values()) - len(DIFFERENCES) == 103
