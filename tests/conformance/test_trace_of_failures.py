"""The trace of decisions under a failure policy tells all of them, as `trace_checker` recomputes them."""

import itertools
import json

import msgspec
import pytest
import trace_checker

from podscaler.core.model import history
from podscaler.core.model.observation import Measurement
from podscaler.testing.decisions import DOWN, NOW, SECOND, Json, decided, external_metric, observed, scaler, values

POLICIES: dict[str, Json] = {
    "none": {},
    "keep": {"keepLastFor": "20s"},
    "ignore": {"ignoreFailed": True},
    "fallback": {"fallback": {"replicas": 4, "after": "20s"}},
    "all": {"keepLastFor": "20s", "ignoreFailed": True, "fallback": {"replicas": 4, "after": "0s"}},
}
ANSWERS: tuple[Measurement, ...] = (DOWN, values(2000), values(8000))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_trace_tells_the_whole_decision(policy: Json) -> None:
    """Two metrics, each of which fails or wants 2 or 8 of 5 replicas, in every combination over three syncs."""
    spec = scaler(external_metric(average="1"), external_metric(value="1"), on_failure=policy)
    pairs = list(itertools.product(ANSWERS, repeat=2))
    for syncs in itertools.product(pairs, repeat=3):
        past = history.EMPTY
        for number, answers in enumerate(syncs):
            decision = decided(spec, observed(*answers, replicas=5), past, NOW + number * 15 * SECOND)
            past = decision.history
            conditions = json.loads(msgspec.json.encode(decision.status.conditions))
            trace = json.loads(msgspec.json.encode(decision.trace))
            assert trace_checker.check(trace) == (decision.replicas, conditions, decision.error)
