"""What may change in the pod template of a Job, by its state."""

import copy
from typing import Any

import pytest

from podscaler.api.kinds.apps import job

RESOURCES = {"requests": {"cpu": "2"}}
SUSPENDED = [{"type": "Suspended", "status": "True"}]


def stored(*, suspend: bool, status: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    pod = {"restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "containers": [container]}
    labels = job.own_labels({"uid": "u", "name": "j"})
    found = {
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "spec": {
            "suspend": suspend,
            "selector": {"matchLabels": {job.UID_LABEL: "u"}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    job.set_defaults(found)
    return found | {"status": status}


def with_resources(before: dict[str, Any]) -> dict[str, Any]:
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"]["containers"][0]["resources"] = RESOURCES
    return after


@pytest.mark.parametrize(
    ("suspend", "status", "fields"),
    [
        pytest.param(True, {}, [], id="never started"),
        pytest.param(True, {"startTime": "2026-01-01T00:00:00Z", "conditions": SUSPENDED}, [], id="stopped"),
        pytest.param(True, {"startTime": "2026-01-01T00:00:00Z"}, ["spec.template"], id="not stopped yet"),
        pytest.param(True, {"active": 1}, ["spec.template"], id="with pods"),
        pytest.param(False, {}, ["spec.template"], id="running"),
    ],
)
def test_resources_change_in_stopped_jobs_alone(suspend: bool, status: dict[str, Any], fields: list[str]) -> None:
    before = stored(suspend=suspend, status=status)
    assert [error.field for error in job.validate(with_resources(before), before)] == fields


def test_node_affinity_changes_and_other_affinity_does_not() -> None:
    before = stored(suspend=True, status={})
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {}}
    assert job.validate(after, before) == []
    after["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"] = {}
    assert [error.field for error in job.validate(after, before)] == ["spec.template.spec"]
