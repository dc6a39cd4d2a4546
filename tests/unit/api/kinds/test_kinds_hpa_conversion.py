"""Autoscalers between v1 and v2: what v1 cannot say travels in annotations."""

import json
from typing import Any

import pytest

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_v1

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_CPU_80 = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def _cpu(share_pct: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": share_pct}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _pods(value: str) -> dict[str, Any]:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": value}},
    }


def _v1_notes(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
    shown = hpa_v1.from_v2({"metadata": {"name": "web"}, "spec": spec, "status": status or {}})
    notes = shown["metadata"].get("annotations", {})
    return {key.removeprefix(_PREFIX): json.loads(text) for key, text in notes.items()}


def _metrics_from(notes: dict[str, str], **spec: Any) -> Any:
    annotations = {_PREFIX + key: text for key, text in notes.items()}
    return hpa_v1.to_v2({"metadata": {"annotations": annotations}, "spec": spec})["spec"]["metrics"]


def test_the_first_cpu_utilization_is_v1s_own() -> None:
    """The first cpu utilization becomes the field, other metrics an annotation, a second cpu utilization is lost."""
    hpa = {
        "metadata": {},
        "spec": {"maxReplicas": 9, "metrics": [_pods("5"), _cpu(50), _cpu(60)]},
        "status": {"desiredReplicas": 3},
    }
    shown = hpa_v1.from_v2(hpa)
    assert shown["spec"] == {"maxReplicas": 9, "targetCPUUtilizationPercentage": 50}
    assert shown["metadata"]["annotations"] == {
        f"{_PREFIX}metrics": '[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"5"}}]'
    }
    assert shown["status"] == {"currentReplicas": 0, "desiredReplicas": 3}


def test_the_last_cpu_status_is_v1s_own() -> None:
    """Of several cpu statuses the last one is shown; the annotation has them all."""
    current = [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": share, "averageValue": "1"}}}
        for share in (10, 20)
    ]
    shown = hpa_v1.from_v2({"spec": {}, "status": {"currentMetrics": current}})
    assert shown["status"]["currentCPUUtilizationPercentage"] == 20
    assert len(json.loads(shown["metadata"]["annotations"][f"{_PREFIX}current-metrics"])) == 2


def test_annotations_escape_as_go_does() -> None:
    """Texts inside annotations have <, > and & escaped, as Go writes JSON."""
    shown = hpa_v1.from_v2({"spec": {}, "status": {"conditions": [{"type": "A", "message": "<&>"}]}})
    text = shown["metadata"]["annotations"][f"{_PREFIX}conditions"]
    assert text == '[{"type":"A","message":"\\u003c\\u0026\\u003e"}]'


def test_behavior_has_all_of_gos_fields() -> None:
    """The behavior annotation names every field, null where it is unset."""
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "tolerance": "50m"}}
    assert _v1_notes({"behavior": behavior}) == {
        "behavior": {
            "ScaleUp": {
                "StabilizationWindowSeconds": None,
                "SelectPolicy": None,
                "Policies": [{"Type": "Pods", "Value": 4, "PeriodSeconds": 15}],
                "Tolerance": "50m",
            },
            "ScaleDown": None,
        }
    }


@pytest.mark.parametrize(
    ("notes", "spec", "metrics"),
    [
        pytest.param({}, {}, [_CPU_80], id="nothing said"),
        pytest.param({}, {"targetCPUUtilizationPercentage": 50}, [_cpu(50)], id="field"),
        pytest.param({"metrics": "[]"}, {}, [_CPU_80], id="empty list"),
        pytest.param({"metrics": "null"}, {}, [_CPU_80], id="null"),
        pytest.param({"metrics": "{"}, {"targetCPUUtilizationPercentage": 50}, [_cpu(50)], id="no JSON"),
        pytest.param({"metrics": '[{"type": 5}]'}, {}, [_CPU_80], id="wrong type"),
        pytest.param(
            {"metrics": '[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"0.5"}}]'},
            {"targetCPUUtilizationPercentage": 50},
            [_pods("500m"), _cpu(50)],
            id="the field comes last",
        ),
        pytest.param(
            {"metrics": '[{"TYPE":"Pods","Pods":{"METRICNAME":"rps","targetaveragevalue":5,"other":1}}]'},
            {},
            [_pods("5")],
            id="any case, numbers, unknown keys",
        ),
        pytest.param(
            {"metrics": '[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"5x"}}]'},
            {},
            [_CPU_80],
            id="a bad quantity spoils all",
        ),
    ],
)
def test_metrics_from_v1(notes: dict[str, str], spec: dict[str, Any], metrics: list[Any]) -> None:
    """Metrics come from the annotation, then from the field, and else are 80 % of cpu."""
    assert _metrics_from(notes, **spec) == metrics


@pytest.mark.parametrize(
    ("flat", "target"),
    [
        pytest.param({"targetValue": "5"}, {"type": "Value", "value": "5"}, id="value"),
        pytest.param({"averageValue": "3"}, {"type": "AverageValue", "averageValue": "3"}, id="average, zero value"),
        pytest.param(
            {"targetValue": "5", "averageValue": "3"},
            {"type": "AverageValue", "value": "5", "averageValue": "3"},
            id="both",
        ),
        pytest.param({}, {"type": "Value", "value": "0"}, id="neither"),
    ],
)
def test_object_targets(flat: dict[str, str], target: dict[str, str]) -> None:
    """The target's type follows from the fields that are set; a zero value beside an average is an artefact."""
    metric = {"type": "Object", "object": {"metricName": "hits", "target": {"kind": "Service", "name": "s"}, **flat}}
    found = _metrics_from({"metrics": json.dumps([metric])})
    assert found[0]["object"] == {
        "describedObject": {"kind": "Service", "name": "s"},
        "target": target,
        "metric": {"name": "hits"},
    }


@pytest.mark.parametrize(
    ("text", "behavior"),
    [
        pytest.param('{"scaleup":{"selectpolicy":"Min"}}', {"scaleUp": {"selectPolicy": "Min"}}, id="any case"),
        pytest.param("{}", None, id="empty"),
        pytest.param('{"ScaleUp":{"StabilizationWindowSeconds":2147483648}}', None, id="out of range"),
        pytest.param(
            '{"ScaleDown":{"Policies":[{}]}}',
            {"scaleDown": {"policies": [{"type": "", "value": 0, "periodSeconds": 0}]}},
            id="zero policy",
        ),
    ],
)
def test_behavior_from_v1(text: str, behavior: Any) -> None:
    """The behavior annotation counts if it parses and says something; it is not defaulted."""
    hpa = {"metadata": {"annotations": {f"{_PREFIX}behavior": text}}, "spec": {}}
    assert hpa_v1.to_v2(hpa)["spec"].get("behavior") == behavior


def test_status_from_v1() -> None:
    """The current-metrics annotation replaces the field; conditions come back."""
    notes = {
        f"{_PREFIX}current-metrics": '[{"type":"External","external":{"metricName":"q","currentAverageValue":"2"}}]',
        f"{_PREFIX}conditions": '[{"type":"AbleToScale","status":"True","lastTransitionTime":null}]',
    }
    status = {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 7}
    assert hpa_v1.to_v2({"metadata": {"annotations": notes}, "spec": {}, "status": status})["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            {"type": "External", "external": {"metric": {"name": "q"}, "current": {"value": "0", "averageValue": "2"}}}
        ],
        "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None}],
    }


def test_reserved_annotations_are_neither_set_nor_seen_through_v2() -> None:
    """Whatever v2 objects carry in the six reserved annotations is dropped; others stay."""
    hpa = {"metadata": {"annotations": {**dict.fromkeys(hpa_annotations.RESERVED, "x"), "mine": "y"}}}
    hpa_annotations.remove_reserved(hpa)
    only = {"metadata": {"annotations": dict.fromkeys(hpa_annotations.RESERVED, "x")}}
    hpa_annotations.remove_reserved(only)
    assert [hpa, only] == [{"metadata": {"annotations": {"mine": "y"}}}, {"metadata": {}}]
