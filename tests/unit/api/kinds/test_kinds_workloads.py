"""Deployments, ReplicaSets, StatefulSets, ReplicationControllers: defaults, refusals, tables, scales."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.resource.resources import Resource

_NOW_NS = 1_767_225_600 * 10**9
_NOT_NEGATIVE = "must be greater than or equal to 0"
_UNSELECTED = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
_DEPLOYMENT = catalog.get("deployments.apps")
_REPLICA_SET = catalog.get("replicasets.apps")
_STATEFUL_SET = catalog.get("statefulsets.apps")
_CONTROLLER = catalog.get("replicationcontrollers")


def _workload(resource: Resource, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"app": "web"} if resource is _CONTROLLER else {"matchLabels": {"app": "web"}}
    obj = {"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template, **spec}}
    resource.versions[0].default(obj)
    return obj


def _faults(resource: Resource, old: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    return [str(fault) for fault in resource.strategy.validate(_workload(resource, **spec), old)]


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="fine"),
        pytest.param(
            {"selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="empty selector",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            [
                "spec.selector.matchExpressions[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'",
                'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"In"}]}: '
                "invalid label selector",
            ],
            id="faulty selector",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}},
            [],
            id="selector by expression",
        ),
        pytest.param(
            {"minReadySeconds": -1}, [f"spec.minReadySeconds: Invalid value: -1: {_NOT_NEGATIVE}"], id="min ready"
        ),
        pytest.param(
            {"minReadySeconds": 600},
            ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
            id="deadline before it can be ready",
        ),
        pytest.param({"strategy": {"type": "Recreate"}}, [], id="recreate"),
        pytest.param(
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
            id="recreate while rolling",
        ),
        pytest.param(
            {"strategy": {"type": "Roll"}},
            [
                'spec.strategy: Unsupported value: {"Type":"Roll","RollingUpdate":null}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
            id="unknown strategy",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
            id="no room to roll",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": "150%", "maxUnavailable": "101%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="more than all",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": -1}}},
            [
                f"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: {_NOT_NEGATIVE}",
                'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric '
                "string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')",
            ],
            id="no amounts",
        ),
    ],
)
def test_deployments(spec: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in a deployment is told with its path, in upstream's words."""
    assert _faults(_DEPLOYMENT, **spec) == faults


@pytest.mark.parametrize("resource", [_DEPLOYMENT, _REPLICA_SET, _STATEFUL_SET], ids=lambda each: each.kind)
def test_selectors_stay(resource: Resource) -> None:
    """The selector of a stored workload may not change."""
    old = _workload(resource)
    new = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert _faults(resource, old, selector=new) == [
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'
    ]


@pytest.mark.parametrize(
    "resource", [_DEPLOYMENT, _REPLICA_SET, _STATEFUL_SET, _CONTROLLER], ids=lambda each: each.kind
)
def test_pods_of_workloads_never_end_by_themselves(resource: Resource) -> None:
    """A template's pods restart always and have no deadline."""
    template = _workload(resource)["spec"]["template"]
    template["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": 5}
    kind = "ReplicaSet" if resource is _DEPLOYMENT else resource.kind
    assert _faults(resource, template=template) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {kind} is not Supported",
    ]


def test_an_unchanged_template_is_not_judged_again() -> None:
    """A workload stored under older rules can still be scaled."""
    old = _workload(_DEPLOYMENT)
    old["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    assert _faults(_DEPLOYMENT, old, template=old["spec"]["template"], replicas=5) == []


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"podManagementPolicy": "Any"},
            ["spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'"],
            id="management",
        ),
        pytest.param(
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            [
                'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            ],
            id="rolling on delete",
        ),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"partition": -1, "maxUnavailable": 0}}},
            [
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
            ],
            id="rolling amounts",
        ),
    ],
)
def test_stateful_sets(spec: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in a stateful set is told with its path."""
    assert _faults(_STATEFUL_SET, **spec) == faults


def test_what_of_a_stateful_set_may_change() -> None:
    """Replicas, template and strategy may change, the service name not."""
    old = _workload(_STATEFUL_SET, serviceName="a")
    kept = _faults(_STATEFUL_SET, old, serviceName="a", replicas=7, minReadySeconds=3)
    refused = _faults(_STATEFUL_SET, old, serviceName="b")
    assert [kept, refused] == [[], ['spec.serviceName: Invalid value: "b": field is immutable']]


def test_replication_controllers_take_selector_and_labels_from_the_template() -> None:
    """What is not given follows from the template's labels."""
    controller = _workload(_CONTROLLER, selector=None)
    assert [controller["spec"]["selector"], controller["metadata"]["labels"]] == [{"app": "web"}, {"app": "web"}]


@pytest.mark.parametrize("resource", [_DEPLOYMENT, _REPLICA_SET, _STATEFUL_SET], ids=lambda each: each.kind)
def test_counts_of_a_status(resource: Resource) -> None:
    """No count of a status is below zero or above the count that it is part of."""
    status = {"replicas": 2, "readyReplicas": 3, "observedGeneration": -1}
    assert [str(fault) for fault in resource.strategy.validate_status({"status": status}, None)] == [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas",
    ]


@pytest.mark.parametrize(
    ("resource", "selector"),
    [
        (_DEPLOYMENT, {"matchLabels": {"b": "2", "a": "1"}}),
        (_CONTROLLER, {"b": "2", "a": "1"}),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_scales(resource: Resource, selector: dict[str, Any]) -> None:
    """A scale shows wanted and observed replicas and the canonical selector, and sets the wanted ones."""
    mapping = resource.scale
    assert mapping is not None
    obj = {"spec": {"replicas": 3, "selector": selector}, "status": {"replicas": 2}}
    assert [mapping.replicas(obj), mapping.status_replicas(obj), mapping.selector(obj)] == [3, 2, "a=1,b=2"]
    mapping.set_replicas(obj, 0)
    assert [mapping.replicas(obj), mapping.selector({"spec": {}})] == [0, ""]


def test_tables() -> None:
    """READY counts ready pods of those asked for; wide tables show containers, images and the selector."""
    obj = {**_workload(_DEPLOYMENT, replicas=3), "status": {"readyReplicas": 2, "updatedReplicas": 1}}
    rows = [each.printer.row(obj, _NOW_NS) for each in (_DEPLOYMENT, _REPLICA_SET, _STATEFUL_SET)]
    assert rows == [
        ["web", "2/3", 1, 0, "<unknown>", "c", "i", "app=web"],
        ["web", 3, 0, 2, "<unknown>", "c", "i", "app=web"],
        ["web", "2/3", "<unknown>", "c", "i"],
    ]
