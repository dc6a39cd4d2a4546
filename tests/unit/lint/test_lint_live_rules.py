"""Rules about objects of a cluster, and about what it serves."""

import json

import pytest
from lint_manifests import (
    REFERENCE,
    Object,
    Short,
    deployment,
    external,
    hpa,
    obj,
    object_metric,
    pods_metric,
    short,
)

from podscaler.lint.model.lint_context import LintedCluster
from podscaler.lint.rules import served_metrics

HPA = "HorizontalPodAutoscaler shop/web"
WEB = "Deployment shop/web"
NOTHING = LintedCluster(
    metrics={served_metrics.RESOURCE: None, served_metrics.CUSTOM: None, served_metrics.EXTERNAL: None}
)
LISTED = LintedCluster(
    metrics={
        served_metrics.RESOURCE: frozenset({"pods", "nodes"}),
        served_metrics.CUSTOM: frozenset({"pods/requests", "ingresses.networking.k8s.io/hits"}),
        served_metrics.EXTERNAL: frozenset({"queue_messages"}),
    }
)
SILENT = LintedCluster(
    metrics={served_metrics.CUSTOM: frozenset(), served_metrics.EXTERNAL: frozenset({"externalmetrics"})}
)
NAME = "spec.metrics[0].{}.metric.name"

SERVED: dict[str, tuple[Object, LintedCluster, list[Short]]] = {
    "no resource metrics": (hpa(), NOTHING, [("PSL013", HPA, "spec.metrics[0].resource")]),
    "resource metrics": (hpa(), LISTED, []),
    "no custom metrics": (hpa(metrics=[pods_metric("a")]), NOTHING, [("PSL013", HPA, "spec.metrics[0].pods")]),
    "a custom metric": (hpa(metrics=[pods_metric("requests")]), LISTED, []),
    "another custom metric": (hpa(metrics=[pods_metric("hits")]), LISTED, [("PSL013", HPA, NAME.format("pods"))]),
    "a metric of an object": (hpa(metrics=[object_metric("hits")]), LISTED, []),
    "a metric of objects of another kind": (
        hpa(metrics=[object_metric("hits", "Service")]),
        LISTED,
        [("PSL013", HPA, NAME.format("object"))],
    ),
    "an external metric": (hpa(metrics=[external("queue_messages")]), LISTED, []),
    "another external metric": (
        hpa(metrics=[external("other")]),
        LISTED,
        [("PSL013", HPA, NAME.format("external"))],
    ),
    "adapters that do not list": (hpa(metrics=[external("other"), pods_metric("other")]), SILENT, []),
    "a cluster that did not say": (hpa(metrics=[external("other")]), LintedCluster(), []),
}


@pytest.mark.parametrize(("autoscaler", "cluster", "expected"), SERVED.values(), ids=SERVED)
def test_metrics_that_are_not_served(autoscaler: Object, cluster: LintedCluster, expected: list[Short]) -> None:
    """PSL013 says what discovery lacks, and nothing where discovery does not tell."""
    assert short(autoscaler, cluster=cluster, is_live=True) == expected


def test_a_target_is_missing_in_a_cluster_only_if_its_kind_was_listed() -> None:
    """PSL003 needs the list of the kind."""
    assert short(hpa(), cluster=LintedCluster(), is_live=True) == []
    listed = LintedCluster(listed=frozenset({("apps", "deployment")}))
    assert short(hpa(), cluster=listed, is_live=True) == [("PSL003", HPA, "spec.scaleTargetRef.name")]


def test_kinds_of_the_cluster() -> None:
    """PSL002 knows from discovery which kinds have a scale, and which are not served at all."""
    kind = ("example.com", "widget")
    widget = hpa(scaleTargetRef={"apiVersion": "example.com/v1", "kind": "Widget", "name": "web"})
    finding = [("PSL002", HPA, "spec.scaleTargetRef.kind")]
    assert short(widget, cluster=LintedCluster(scalable={kind: True}), is_live=True) == []
    assert short(widget, cluster=LintedCluster(scalable={kind: False}), is_live=True) == finding
    assert short(widget, cluster=LintedCluster(unserved=frozenset({kind})), is_live=True) == finding


def test_replicas_of_a_cluster_tell_by_who_applied_them() -> None:
    """PSL005 needs kubectl's annotation or an applied configuration: every object of a cluster has replicas."""
    plain = deployment(replicas=3)
    applied = deployment(replicas=3)
    written = json.dumps({"spec": {"replicas": 3}})
    applied["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": written}
    managed = deployment(replicas=3)
    managed["metadata"]["managedFields"] = [
        {"manager": "flux", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    ]
    cluster = LintedCluster()
    assert short(hpa(), plain, cluster=cluster, is_live=True) == []
    finding = [("PSL005", WEB, "spec.replicas")]
    assert short(hpa(), applied, cluster=cluster, is_live=True) == finding
    assert short(hpa(), managed, cluster=cluster, is_live=True) == finding


def test_objects_of_a_cluster_are_not_validated_again() -> None:
    """What a newer server accepted is no finding, and does not stop the rules."""
    newer = hpa(metrics=[{"type": "Newer", "newer": {}}], maxReplicas=2)
    assert short(newer, cluster=LintedCluster(), is_live=True) == [("PSL014", HPA, "spec.maxReplicas")]


def test_defaults_of_a_cluster_are_nobodys_choice() -> None:
    """PSL009 does not blame anybody for the defaults that the server fills in beside Disabled."""
    rules = {"selectPolicy": "Disabled", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
    assert short(hpa(behavior={"scaleDown": rules}), cluster=LintedCluster(), is_live=True) == []


def test_an_unreadable_quota_says_nothing() -> None:
    """Amounts that cannot be read are not guessed."""
    odd = obj("ResourceQuota", "v1", "q", spec={"hard": {"pods": "1"}})
    assert short(hpa(scaleTargetRef=REFERENCE), odd, cluster=LintedCluster(), is_live=True) == []
