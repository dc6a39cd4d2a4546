"""The shipped manifests on a running server: accepted to the last field, and permissions that suffice and are used."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from scaled_targets import TARGETS, populate
from shipped_controller import QUICK_FLAGS, ShippedController, asked, audited
from up_process import Up, eventually

import shipped_manifests as shipped
from shipped_manifests import CHART, KUSTOMIZE, NAMESPACE, Grant

pytestmark = [pytest.mark.e2e]

Object = dict[str, Any]

_TEXTS = ("port", "interval", "scheme", "bearerTokenFile")
MONITORS = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["endpoints", "selector"],
                                "properties": {
                                    "selector": {
                                        "type": "object",
                                        "properties": {
                                            "matchLabels": {
                                                "type": "object",
                                                "additionalProperties": {"type": "string"},
                                            }
                                        },
                                    },
                                    "endpoints": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                **{name: {"type": "string"} for name in _TEXTS},
                                                "tlsConfig": {
                                                    "type": "object",
                                                    "properties": {"serverName": {"type": "string"}},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""The part of the Prometheus operator's definition that the chart uses."""

EVERYTHING = {
    "controller": {
        "shards": 3,
        "flags": {"feature-gates": "HPAScaleToZero=true"},
        "env": [{"name": "A", "value": "b"}],
    },
    "metrics": {
        "tlsSecret": "podscaler-tls",
        "authentication": "delegated",
        "serviceMonitor": {"enabled": True, "labels": {"team": "a"}, "tlsConfig": {"serverName": "podscaler"}},
    },
    "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]},
    "tracing": {"otlpEndpoint": "http://collector:4318"},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "serviceAccount": {"annotations": {"e": "f"}},
}


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server accounts for requests."""
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, audit_log: Path) -> Iterator[Up]:
    """A server whose autoscaling is left to others."""
    flags = ("--without-autoscaler", "--metric-resolution=500ms", f"--audit-log={audit_log}")
    instance = Up(tmp_path_factory.mktemp("deploy") / "data", flags).start()
    instance.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", MONITORS)
    instance.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    eventually(lambda: instance.find("/apis/monitoring.coreos.com/v1"))
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@pytest.fixture
def controller(plane: Up, tmp_path: Path) -> Iterator[ShippedController]:
    """Not installed yet."""
    made = ShippedController(plane, tmp_path)
    yield made
    made.end()


def rendered(case: str) -> list[Object]:
    """The objects of a chart's or a kustomization's case."""
    if case == "chart":
        return [*yaml.safe_load_all(shipped.run_helm("show", "crds", str(CHART)).stdout), *shipped.helm_template()]
    if case == "chart with everything":
        return shipped.helm_template(values=EVERYTHING)
    return [obj for obj in yaml.safe_load_all(shipped.kustomized(KUSTOMIZE / case)) if obj]


@pytest.mark.parametrize(
    "case", ["chart", "chart with everything", "base", "overlays/high-availability", "overlays/sharded"]
)
def test_every_object_is_accepted_to_the_last_field(plane: Up, case: str) -> None:
    """A dry run with strict validation: no unknown field, no object that is refused."""
    refused = [f"{obj['kind']}: {answer}" for obj in rendered(case) if (answer := refusal(plane, obj))]
    assert refused == []


def refusal(up: Up, obj: Object) -> str:
    """Why the server does not take the object, empty where it does."""
    prefix = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
    (resource,) = (
        each for each in up.get(prefix)["resources"] if each["kind"] == obj["kind"] and "/" not in each["name"]
    )
    place = f"/namespaces/{obj['metadata']['namespace']}" if resource["namespaced"] else ""
    if obj["kind"] == "Namespace":  # it is there: only its fields are of interest
        obj = obj | {"metadata": obj["metadata"] | {"name": f"{NAMESPACE}-new"}}
    answer = up.request("POST", f"{prefix}{place}/{resource['name']}?dryRun=All&fieldValidation=Strict", obj)
    return "" if answer.status == 201 else str(answer.body.get("message"))


UNUSED = {
    **{
        Grant("watch", group, resource): "granted to the built-in controller too; metrics cannot be watched"
        for group, resource in (
            ("metrics.k8s.io", "pods"),
            ("custom.metrics.k8s.io", "*"),
            ("external.metrics.k8s.io", "*"),
        )
    },
    **{
        Grant(verb, "events.k8s.io", "events"): "granted to the built-in controller too, which may write either kind"
        for verb in ("create", "patch", "update")
    },
    Grant("update", "", "events"): "granted to the built-in controller too, which patches as well",
    Grant("get", "coordination.k8s.io", "leases", "kube-controller-manager"): "asked for while that one competes",
    Grant("get", "autoscaling", "horizontalpodautoscalers"): "granted to the built-in controller too; the watch tells",
    Grant("list", "custom.metrics.k8s.io", "*"): "granted to the built-in controller too; adapters are asked by name",
    Grant("get", "external.metrics.k8s.io", "*"): "granted to the built-in controller too; adapters give lists",
    **{
        Grant("list", group, resource): "this server streams lists as watches; older ones do not"
        for group, resource in (
            ("", "pods"),
            ("", "replicationcontrollers"),
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
            ("podscaler.dev", "podautoscalers"),
            ("podscaler.dev", "metricsources"),
        )
    },
    Grant("patch", "podscaler.dev", "metricsources/status"): "there is no MetricSource here",
}
"""What no request uses, and why it is granted all the same."""


def test_permissions_suffice_and_each_is_used(plane: Up, controller: ShippedController, audit_log: Path) -> None:
    """With every type of metric and of target: nothing is refused, and every rule but the known ones is needed."""
    controller.install()
    populate(plane, "shop")
    controller.start()
    try:
        for path in TARGETS:
            eventually(
                lambda path=path: plane.get(path.format(namespace="shop"))["spec"]["replicas"],
                until=lambda replicas: replicas == 3,
            )
        for name in ("web", "db", "set", "rc", "pool"):  # a record that is kept already is changed
            plane.patch(
                f"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/{name}", {"spec": {"maxReplicas": 2}}
            )
        unused = eventually(lambda: idle(controller, audit_log), until=lambda found: found <= set(UNUSED), every_s=1)
        assert controller.stop() == 0
    finally:
        controller.end()
    assert unused == set(UNUSED)
    assert refusals(controller, audit_log) == []


@pytest.mark.parametrize(
    ("kinds", "advice"),
    [
        pytest.param(["hpa", "podautoscaler"], "--controllers=*,-horizontal-pod-autoscaler-controller", id="instead"),
        pytest.param(["podautoscaler"], "Move autoscalers to the kind PodAutoscaler", id="beside"),
    ],
)
def test_who_installs_is_told_what_to_do_next(controller: ShippedController, kinds: list[str], advice: str) -> None:
    """In the place of the built-in controller, or beside it."""
    notes = controller.install(kinds=kinds).partition("NOTES:\n")[2]
    assert advice in notes
    assert "podscaler migrate hpa NAME --namespace NAMESPACE --history-namespace kube-system\n" in notes


PATIENT_LEASES = {"leader-elect-lease-duration": "60s", "leader-elect-renew-deadline": "40s"}
"""A Lease is removed at the end within half of the renew deadline, or stays."""


def test_permissions_suffice_for_shares(plane: Up, controller: ShippedController, audit_log: Path) -> None:
    """Members come and go: their Leases are made, followed and removed."""
    controller.install(shards=2, flags=QUICK_FLAGS | PATIENT_LEASES)
    before = len(audited(audit_log))
    populate(plane, "shares")
    controller.start()
    web = TARGETS[0].format(namespace="shares")
    eventually(lambda: plane.get(web)["spec"]["replicas"], until=lambda replicas: replicas == 3)
    assert controller.stop() == 0
    leases = {grant for grant in controller.rules() if grant.resource == "leases"}

    def unused() -> list[Grant]:
        used = asked(audited(audit_log)[before:])
        return [grant for grant in leases if not any(grant.covers(each) for each in used)]

    eventually(unused, until=lambda found: found == [])
    assert refusals(controller, audit_log) == []


def idle(controller: ShippedController, audit_log: Path) -> set[Grant]:
    """The permissions that no request has used so far; ConfigMaps of histories count as one, as hashes choose them."""
    used = {_with_one_history(each) for each in asked(audited(audit_log))}
    granted = {_with_one_history(each) for each in controller.rules()}
    return {grant for grant in granted if not any(grant.covers(each) for each in used)}


def _with_one_history(grant: Grant) -> Grant:
    return replace(grant, name=re.sub(r"^podscaler-history-\d\d$", "podscaler-history-NN", grant.name))


def refusals(controller: ShippedController, audit_log: Path) -> list[str]:
    """What was refused for want of a permission, by the audit log and by the controller's own."""
    events = [event["requestURI"] for event in audited(audit_log) if event["responseStatus"].get("code") == 403]
    return [*events, *controller.complaints()]
