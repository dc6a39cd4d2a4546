"""Pods of recordings: what decisions read, and the CPU limits, from which a backtest knows that demand is hidden."""

import json
from typing import Any

import msgspec

import made_recordings
from podscaler.controller.informers import observed_objects
from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.core.model.emulation import V1_37
from podscaler.simulation.evaluation import recording_scenario
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection


def _cached(pod: dict[str, Any], *, with_json: bool = True) -> CachedPod:
    return observed_objects.pod_source(V1_37, with_json=with_json).read(msgspec.Raw(json.dumps(pod).encode()))


def _limited(name: str) -> dict[str, Any]:
    """A pod as the API server has it, with more than a recording needs."""
    pod = made_recordings.pod(name, limit="500m")
    pod["spec"]["containers"][0] |= {"image": "app:1", "env": [{"name": "TOKEN", "value": "secret"}]}
    pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    return pod


def test_a_recorded_pod_has_its_cpu_limit() -> None:
    """Other limits, images and variables are left out."""
    containers = json.loads(_cached(_limited("web-0")).trimmed_json)["spec"]["containers"]
    assert containers == [{"name": "app", "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "500m"}}}]


def test_decisions_do_not_see_limits() -> None:
    """The facts of a pod are the same with and without; without a recording there is no text."""
    limited, unlimited = _limited("web-0"), made_recordings.pod("web-0")
    assert _cached(limited, with_json=False) == _cached(unlimited, with_json=False)


def test_a_backtest_of_a_recording_finds_hidden_demand() -> None:
    """From the API's pod through the controller's cache to the sentence: 490m of 500m is at the limit."""
    pod = json.loads(_cached(_limited("web-0")).trimmed_json)
    syncs = [
        made_recordings.sync(at_s, [pod], made_recordings.usage(at_s - 5, {"web-0": used_milli}))
        for at_s, used_milli in [(0, 100), (15, 490), (30, 100)]
    ]
    found = recording_scenario.read(made_recordings.lines(syncs), RecordedSelection())
    assert found.assumptions[1] == (
        "In 30.0 % of the time pods were at their CPU limit, so the demand is only a lower bound then: "
        "2026-01-31T11:59:55Z to 2026-01-31T12:00:10Z."
    )
