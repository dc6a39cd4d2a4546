"""What a scenario expects is checked at every sync, and a miss is one sentence."""

import pytest

from podscaler.simulation import engine
from podscaler.simulation.model import expectations
from podscaler.simulation.model.expectations import Expectation, ExpectationCheck
from podscaler.simulation.model.workloads import RequestLoad
from unit.simulation.simulated import cpu_spec, load, scenario, web

STEP = load({0: 0.1, 60: 0.4})
"""On 200m and 50 %: one replica, from second 105 on four."""


def check(**fields: object) -> str:
    whole = {"workload": "default/web", "until_ms": 300_000} | fields
    found = ExpectationCheck(Expectation(**whole))
    for sync in engine.simulate(scenario(web(STEP), cpu_spec(), seconds=300)):
        found.add(sync)
    return found.failure()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"value": "replicas", "low": 1, "high": 4}, ""),
        ({"value": "replicas", "low": 4, "high": 4, "from_ms": 90_000}, ""),
        (
            {"value": "replicas", "low": 2, "high": 2, "until_ms": 30_000},
            "web: 1 replica at 0:00, expected 2 between 0:00 and 0:30; the same at 2 later syncs",
        ),
        (
            {"value": "replicas", "high": 3, "from_ms": 285_000},
            "web: 4 replicas at 4:45, expected at most 3 between 4:45 and 5:00; the same at 1 later sync",
        ),
        (
            {"value": "ready", "low": 2, "until_ms": 0},
            "web: 1 ready pod at 0:00, expected at least 2 between 0:00 and 0:00",
        ),
        ({"value": "wanted", "low": 1, "high": 4}, ""),
        (
            {"value": "ready", "low": 1, "from_ms": 1_000, "until_ms": 2_000},
            "web: no sync between 0:01 and 0:02, so that ready cannot be checked",
        ),
    ],
)
def test_a_miss_is_a_sentence(fields: dict[str, object], sentence: str) -> None:
    assert check(**fields) == sentence


def of_requests(value: str, high: float) -> str:
    requests = RequestLoad(rate=load({0: 100}, 1000), cpu_per_request_us=20_000, timeout_ms=1_000)
    from unit.simulation.simulated import pod

    limited = web(requests=requests, pod=pod(limit=500))
    found = ExpectationCheck(Expectation(workload="default/web", value=value, high=high, until_ms=60_000))
    for sync in engine.simulate(scenario(limited, cpu_spec(maximum=1), seconds=60)):
        found.add(sync)
    return found.failure()


def test_the_lost_share_is_of_the_whole_span() -> None:
    """A demand of 2 cores on half a core: a quarter is served."""
    assert of_requests("lost", 0.01).startswith("web: 74")
    assert of_requests("lost", 0.01).endswith("% of the load was lost between 0:00 and 1:00, expected at most 1 %")
    assert of_requests("lost", 0.8) == ""


def test_latency_is_a_mean_response_time() -> None:
    sentence = of_requests("latency", 100)
    assert sentence.startswith("web: a mean response time of ")
    assert "expected at most 100 ms between 0:00 and 1:00" in sentence


@pytest.mark.parametrize(
    ("at_ms", "text"), [(0, "0:00"), (735_000, "12:15"), (3_735_000, "1:02:15"), (90_061_500, "25:01:01.500")]
)
def test_instants_are_minutes_and_seconds(at_ms: int, text: str) -> None:
    assert expectations.clock_text(at_ms) == text
