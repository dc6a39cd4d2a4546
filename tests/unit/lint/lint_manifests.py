"""Manifests for the tests of rules, and what linting says of them in short.

A clean world is `[hpa(), deployment()]`; each case changes one thing.
"""

from copy import deepcopy
from typing import Any

from podscaler.lint import linter
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import LintedCluster
from podscaler.lint.model.linted_item import DocumentOrigin

Object = dict[str, Any]
Short = tuple[str, str, str]

NAMESPACE = "shop"
REFERENCE: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CONTAINER: Object = {
    "name": "main",
    "image": "example.com/web:1",
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}},
}


def cpu(**target: Any) -> Object:
    """A metric: cpu, half of the requests unless said otherwise."""
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": target or {"type": "Utilization", "averageUtilization": 50}},
    }


def resource(name: str) -> Object:
    """A metric: half of the requests of that resource."""
    return {
        "type": "Resource",
        "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": 50}},
    }


def memory() -> Object:
    """A metric: memory."""
    return {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": 1}}}


def container_cpu(container: str) -> Object:
    """A metric: cpu of one container."""
    target = {"type": "Utilization", "averageUtilization": 50}
    return {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": container, "target": target}}


def external(name: str = "queue_messages", **target: Any) -> Object:
    """A metric: of something outside, 30 a pod unless said otherwise."""
    target = target or {"type": "AverageValue", "averageValue": "30"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def pods_metric(name: str) -> Object:
    """A metric of each pod."""
    target = {"type": "AverageValue", "averageValue": "30"}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def object_metric(name: str, kind: str = "Ingress") -> Object:
    """A metric of another object."""
    described = {"apiVersion": "networking.k8s.io/v1", "kind": kind, "name": "web"}
    target = {"type": "AverageValue", "averageValue": "30"}
    return {"type": "Object", "object": {"describedObject": described, "metric": {"name": name}, "target": target}}


def obj(kind: str, api_version: str, name: str, *, namespace: str = NAMESPACE, **rest: Any) -> Object:
    """Any object; `annotations` go where they belong."""
    metadata: Object = {"name": name, "namespace": namespace}
    if annotations := rest.pop("annotations", None):
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def hpa(name: str = "web", *, annotations: Object | None = None, **spec: Any) -> Object:
    """An autoscaler of Deployment web, without a fault, with these fields of its spec."""
    usual = {"scaleTargetRef": REFERENCE, "minReplicas": 2, "maxReplicas": 10, "metrics": [cpu()]}
    return obj("HorizontalPodAutoscaler", "autoscaling/v2", name, annotations=annotations, spec={**usual, **spec})


def behavior(direction: str, **rules: Any) -> Object:
    """An autoscaler with a behavior in one direction."""
    return hpa(behavior={direction: rules})


def deployment(
    name: str = "web", *, containers: list[Object] | None = None, labels: Object | None = None, **spec: Any
) -> Object:
    """A Deployment with one container that requests cpu and memory."""
    labels = labels or {"app": name}
    pod = {"containers": containers or [deepcopy(CONTAINER)], **spec.pop("pod", {})}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return obj("Deployment", "apps/v1", name, spec={"selector": {"matchLabels": labels}, "template": template, **spec})


def container(name: str, **resources: Any) -> Object:
    """A container with these requests and limits."""
    return {"name": name, "image": "example.com/x:1", "resources": resources}


def short(*objects: Object, cluster: LintedCluster | None = None, is_live: bool = False) -> list[Short]:
    """Rule, object and field of all findings."""
    return [(each.rule.id, each.subject, each.field) for each in found(*objects, cluster=cluster, is_live=is_live)]


def found(*objects: Object, cluster: LintedCluster | None = None, is_live: bool = False) -> list[linter.Finding]:
    """All findings about objects, each in a file of its own; or in a cluster."""
    origins = [DocumentOrigin() if is_live else DocumentOrigin(f"{index}.yaml") for index, _ in enumerate(objects)]
    pairs = zip(objects, origins, strict=True)
    return linter.lint([item for each, origin in pairs for item in reading.items(each, origin)], cluster)
