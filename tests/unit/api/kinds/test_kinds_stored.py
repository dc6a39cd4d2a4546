"""Kinds that are kept without behaviour: defaults, refusals, tables."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.kinds.apps import daemonset
from podscaler.testing import workloads as build

Object = dict[str, Any]
POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "b:1"}]}}
ONCE = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"app": "x"}}
BOTH = {"maxUnavailable": 1, "maxSurge": 1}
NEITHER = {"maxUnavailable": 0, "maxSurge": "0%"}


def defaulted(key: str, **fields: Any) -> Object:
    """An object of a kind as it would be stored."""
    resource = catalog.get(key)
    obj: Object = {"metadata": {"name": "x", "uid": "u"}, **fields}
    resource.versions[0].default(obj)
    resource.strategy.prepare_create(obj)
    return obj


def refused(key: str, **fields: Any) -> list[str]:
    """What is wrong with an object that a client creates."""
    return [str(error) for error in catalog.get(key).strategy.validate(defaulted(key, **fields), None)]


def daemon_set(rolling: Object) -> Object:
    """Fields of a DaemonSet with such bounds."""
    return {"spec": {"selector": SELECTOR, "template": POD, "updateStrategy": {"rollingUpdate": rolling}}}


WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"name": "a", "namespace": "b", "path": "/check"}},
    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
    "matchConditions": [{"name": "new", "expression": "request.operation == 'CREATE'"}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def webhooks(**fields: Any) -> Object:
    """The fields of a configuration of one webhook, with some fields of the webhook replaced."""
    return {"webhooks": [{**WEBHOOK, **fields}]}


VALIDATING, MUTATING = (
    f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("validating", "mutating")
)
GOOD: dict[str, Object] = {
    VALIDATING: webhooks(),
    MUTATING: webhooks(clientConfig={"url": "https://127.0.0.1:1/x"}),
    "controllerrevisions.apps": {"data": {}, "revision": 1},
    "daemonsets.apps": {"spec": {"selector": SELECTOR, "template": POD}},
    "jobs.batch": {"spec": {"template": ONCE}},
    "limitranges": {"spec": {"limits": []}},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "resourcequotas": {"spec": {"hard": {"cpu": "2", "limits.cpu": "4"}}},
    "networkpolicies.networking.k8s.io": {
        "spec": {"ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]}
    },
    "ingresses.networking.k8s.io": {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
    "ingressclasses.networking.k8s.io": {"spec": {"controller": "example.com/a"}},
    "runtimeclasses.node.k8s.io": {"handler": "runc"},
    "poddisruptionbudgets.policy": {"spec": {"minAvailable": "50%", "selector": SELECTOR}},
    "priorityclasses.scheduling.k8s.io": {"value": 5},
}


@pytest.mark.parametrize("key", GOOD)
def test_a_plain_object_is_accepted(key: str) -> None:
    """Nothing is wrong with the least that makes sense."""
    assert refused(key, **GOOD[key]) == []


@pytest.mark.parametrize(
    ("key", "fields", "faults"),
    [
        pytest.param("controllerrevisions.apps", {}, ["data: Required value: data is mandatory"], id="no data"),
        pytest.param(
            "daemonsets.apps",
            daemon_set(BOTH),
            [
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
                "non-zero"
            ],
            id="surge and unavailable",
        ),
        pytest.param(
            "daemonsets.apps",
            daemon_set(NEITHER),
            ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
            id="neither surge nor unavailable",
        ),
        pytest.param(
            "jobs.batch",
            {"spec": {"template": POD}},
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="a job that never ends",
        ),
        pytest.param(
            "resourcequotas",
            {"spec": {"hard": {"cpu": "-1"}}},
            ['spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
            id="a negative quota",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {"spec": {}},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
            id="a claim of nothing",
        ),
        pytest.param(
            "networkpolicies.networking.k8s.io",
            {"spec": {"ingress": [{"from": [{}]}]}},
            ["spec.ingress[0].from[0]: Required value: must specify a peer"],
            id="nobody",
        ),
        pytest.param(
            "ingresses.networking.k8s.io",
            {"spec": {"rules": [{"http": {"paths": [{"path": "/", "backend": {"service": {"name": "a"}}}]}}]}},
            [
                "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            ],
            id="an incomplete path",
        ),
        pytest.param("runtimeclasses.node.k8s.io", {}, ["handler: Required value"], id="no handler"),
        pytest.param(
            VALIDATING,
            {"webhooks": [{}]},
            [
                "webhooks[0].name: Required value",
                "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ],
            id="an empty webhook",
        ),
        pytest.param(
            MUTATING,
            webhooks(
                clientConfig={"url": "http://u@x/?a=b#c"},
                timeoutSeconds=31,
                matchConditions=[{"name": "x", "expression": "'text'"}],
                rules=[{**WEBHOOK["rules"][0], "operations": ["*", "PATCH"], "resources": ["*", "pods"]}],
            ),
            [
                'webhooks[0].rules[0].operations: Invalid value: ["*","PATCH"]: '
                "if '*' is present, must not specify other operations",
                'webhooks[0].rules[0].operations[1]: Unsupported value: "PATCH": '
                'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
                'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: '
                "if '*' is present, must not specify other resources without subresources",
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
                'webhooks[0].clientConfig.url: Invalid value: "http": '
                "'https' is the only allowed URL scheme; desired format: https://host[/path]",
                'webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
                'webhooks[0].clientConfig.url: Invalid value: "c": fragments are not permitted in the URL',
                'webhooks[0].clientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL',
                "webhooks[0].matchConditions[0].expression: Invalid value: \"'text'\": must evaluate to bool "
                "but got string",
            ],
            id="a webhook with invalid fields",
        ),
        pytest.param(
            "poddisruptionbudgets.policy",
            {"spec": {"maxUnavailable": -1}},
            ["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative budget",
        ),
        pytest.param(
            "priorityclasses.scheduling.k8s.io",
            {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="a priority of the system",
        ),
    ],
)
def test_what_is_wrong_is_refused(key: str, fields: Object, faults: list[str]) -> None:
    """In upstream's words."""
    assert refused(key, **fields) == faults


@pytest.mark.parametrize(
    ("key", "cells"),
    [
        ("daemonsets.apps", ["x", 0, 0, 0, 0, 0, "<none>", "<unknown>", "a", "b:1", "app=x"]),
        (
            "jobs.batch",
            ["x", "Running", "0/1", "", "<unknown>", "a", "b:1", "batch.kubernetes.io/controller-uid=u"],
        ),
        ("persistentvolumeclaims", ["x", "Pending", "", "", "", "", "<unset>", "<unknown>", "Filesystem"]),
        ("networkpolicies.networking.k8s.io", ["x", "<none>", "<unknown>"]),
        ("ingresses.networking.k8s.io", ["x", "<none>", "*", "", "80", "<unknown>"]),
        ("ingressclasses.networking.k8s.io", ["x", "example.com/a", "<none>", "<unknown>"]),
        ("runtimeclasses.node.k8s.io", ["x", "runc", "<unknown>"]),
        (VALIDATING, ["x", 1, "<unknown>"]),
        ("poddisruptionbudgets.policy", ["x", "50%", "N/A", 0, "<unknown>"]),
        ("priorityclasses.scheduling.k8s.io", ["x", 5, False, "<unknown>", "PreemptLowerPriority"]),
        ("resourcequotas", ["x", "", "", "<unknown>"]),
    ],
)
def test_tables_show_the_kind(key: str, cells: list[Any]) -> None:
    """One row of `kubectl get`."""
    assert catalog.get(key).printer.row(defaulted(key, **GOOD[key]), 0) == cells


def test_a_quota_shows_what_is_used() -> None:
    """Requests and limits apart."""
    quota = {"metadata": {"name": "x"}, "status": {"hard": {"pods": "3", "limits.cpu": "4"}, "used": {"pods": "1"}}}
    assert catalog.get("resourcequotas").printer.row(quota, 0)[1:3] == ["pods: 1/3", "limits.cpu: 0/4"]


def test_a_job_selects_its_own_pods() -> None:
    """By its uid, with the old labels beside the new ones."""
    spec = defaulted("jobs.batch", spec={"template": ONCE})["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "u",
        "job-name": "x",
    }


@pytest.mark.parametrize(
    ("changed", "generation"), [(False, "1"), (True, "2")], ids=["another label of its own", "another image"]
)
def test_changes_of_a_daemon_sets_template_are_counted(changed: bool, generation: str) -> None:
    """The annotation follows the template only."""
    strategy = catalog.get("daemonsets.apps").strategy
    old, new = build.daemon_set(), build.daemon_set()
    strategy.prepare_create(old)
    new["metadata"]["labels"] = {"new": "label"}
    if changed:
        new["spec"]["template"]["spec"]["containers"][0]["image"] = "another:1"
    strategy.prepare_update(new, old)
    assert new["metadata"]["annotations"] == {daemonset.GENERATION_ANNOTATION: generation}


def test_the_claims_of_a_stateful_set_may_be_mounted() -> None:
    """A mount of a claim that the set has is right; of another it is refused."""
    container = {"name": "a", "image": "b:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {**POD, "spec": {"containers": [container]}}
    spec = {"selector": SELECTOR, "serviceName": "x", "template": template}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    assert refused("statefulsets.apps", spec={**spec, "volumeClaimTemplates": claims}) == []
    assert refused("statefulsets.apps", spec=spec) == [
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'
    ]


def test_the_claims_of_a_stateful_set_are_defaulted() -> None:
    """So that applying the same manifest again changes nothing."""
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    obj = defaulted("statefulsets.apps", spec={"volumeClaimTemplates": claims})
    assert obj["spec"]["volumeClaimTemplates"] == [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        }
    ]


@pytest.mark.parametrize(
    ("key", "change", "faults"),
    [
        ("controllerrevisions.apps", {"data": {"a": 1}}, ['data: Invalid value: {"a":1}: field is immutable']),
        ("runtimeclasses.node.k8s.io", {"handler": "b"}, ['handler: Invalid value: "b": field is immutable']),
        ("priorityclasses.scheduling.k8s.io", {"value": 6}, ["value: Forbidden: may not be changed in an update."]),
    ],
)
def test_what_never_changes_is_refused(key: str, change: Object, faults: list[str]) -> None:
    """An update of a fixed field."""
    old = defaulted(key, **GOOD[key])
    errors = catalog.get(key).strategy.validate({**old, **change}, old)
    assert [str(error) for error in errors] == faults
