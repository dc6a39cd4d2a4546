"""What is wrong with an autoscaler, beyond what the captures show."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_HPA = catalog.get("horizontalpodautoscalers.autoscaling")
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_TO_ZERO = (
    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"
)


def _hpa(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": _TARGET, "maxReplicas": 10, **spec}}


def _faults(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in _HPA.strategy.validate(new, old)]


def _resource(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _external(**target: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": "q"}, "target": target}}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({"minReplicas": 10}, [], id="equal limits"),
        pytest.param({"minReplicas": 0, "metrics": [_external(type="Value", value="1")]}, [], id="to zero"),
        pytest.param({"minReplicas": 0}, [_TO_ZERO], id="to zero without a metric that wakes"),
        pytest.param(
            {"scaleTargetRef": {"kind": "ReplicationController", "name": "rc", "apiVersion": "v1"}}, [], id="rc"
        ),
        pytest.param(
            {"scaleTargetRef": {**_TARGET, "apiVersion": "/v1"}},
            ['spec.scaleTargetRef.apiVersion: Invalid value: "/v1": apiVersion must specify API group'],
            id="group that is empty",
        ),
        pytest.param({"metrics": [_resource(type="Utilization", averageUtilization=1)]}, [], id="least utilization"),
        pytest.param(
            {"metrics": [_resource(type="Utilization", averageUtilization=0)]},
            ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
            id="no utilization",
        ),
        pytest.param({"metrics": [_external(type="Value", value="1n")]}, [], id="smallest value"),
        pytest.param(
            {"metrics": [_external(type="Value", value="0")]},
            ['spec.metrics[0].external.target.value: Invalid value: "0": must be positive'],
            id="zero value",
        ),
        pytest.param(
            {
                "metrics": [
                    {**_resource(type="Utilization", averageUtilization=1), **_external(type="Value", value="1")}
                ]
            },
            ["spec.metrics[0].resource: Forbidden: must populate the given metric source only"],
            id="one source too many",
        ),
    ],
)
def test_spec(spec: dict[str, Any], faults: list[str]) -> None:
    """Limits, target and metrics at the edges of what is allowed."""
    assert _faults(_hpa(**spec)) == faults


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        pytest.param("stabilizationWindowSeconds", 0, None, id="no window"),
        pytest.param("stabilizationWindowSeconds", 3600, None, id="longest window"),
        pytest.param("stabilizationWindowSeconds", 3601, "must be less than or equal to 3600", id="window too long"),
        pytest.param("stabilizationWindowSeconds", -1, "must be greater than or equal to zero", id="window below zero"),
        pytest.param("tolerance", "0", None, id="no tolerance"),
        pytest.param("tolerance", "-1m", "must be greater than or equal to 0", id="tolerance below zero"),
    ],
)
def test_rules(field: str, value: Any, fault: str | None) -> None:
    """Scaling rules at the edges."""
    rules = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1800}], field: value}
    shown = f'"{value}"' if isinstance(value, str) else value
    expected = [f"spec.behavior.scaleDown.{field}: Invalid value: {shown}: {fault}"] if fault else []
    assert _faults(_hpa(behavior={"scaleDown": rules})) == expected


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        pytest.param(
            {"scaleTargetRef": {**_TARGET, "apiVersion": "v1"}},
            {"scaleTargetRef": {**_TARGET, "apiVersion": "v1", "name": "other"}},
            [],
            id="an old target version is not judged again",
        ),
        pytest.param({"minReplicas": -1}, {"minReplicas": -1}, [], id="an old lower limit is not judged again"),
        pytest.param(
            {"minReplicas": -1},
            {"minReplicas": -2},
            ["spec.minReplicas: Invalid value: -2: must be greater than or equal to 0"],
            id="a new lower limit is",
        ),
        pytest.param(
            {"maxReplicas": 0, "minReplicas": 1},
            {"maxReplicas": 0, "minReplicas": 1},
            ["spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"],
            id="limits are compared always",
        ),
    ],
)
def test_updates(old: dict[str, Any], new: dict[str, Any], faults: list[str]) -> None:
    """On update, faults that were there before are forgiven where upstream forgives them."""
    assert _faults(_hpa(**new), _hpa(**old)) == faults


def test_a_bad_version_of_a_described_object_is_forgiven_if_the_stored_object_has_one() -> None:
    """Objects stored before the rule stay editable."""
    described = {"kind": "K", "name": "n", "apiVersion": "a/b/c"}
    metric = {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}},
    }
    fault = "spec.metrics[0].object.describedObject.apiVersion"
    text = f'{fault}: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'
    new = _hpa(metrics=[metric])
    assert [_faults(new), _faults(new, _hpa()), _faults(new, new)] == [[text], [text], []]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"currentMetrics": [{"type": ""}], "desiredReplicas": 0}, []),
        ({"currentReplicas": -1, "desiredReplicas": -1}, ["status.currentReplicas", "status.desiredReplicas"]),
    ],
)
def test_status(status: dict[str, Any], fields: list[str]) -> None:
    """Of a status only numbers below zero are refused."""
    faults = _HPA.strategy.validate_status({"status": status}, None)
    assert [fault.field for fault in faults] == fields
    assert {fault.text.partition(": ")[2] for fault in faults} <= {"-1: must be greater than or equal to 0"}
