"""Builders of pods and workloads for tests of controllers; every argument has a plain default.

Objects are JSON-ready dicts as the API server stores them. Fields that the server sets are left out unless given.
"""

from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.controllers.framework import ownership

NAMESPACE = "default"


def pod(
    name: str = "web-1", *, labels: dict[str, str] | None = None, owner: Object | None = None, **extra: Any
) -> Object:
    """A pod. `extra`: `node`, `phase`, `ready_at` (ns; ready since), `created_at` (ns), `annotations`, `ip`,
    `restarts`, `deleting` (True), `ports` (list of containerPort objects)."""
    metadata = _metadata(name, extra, owner)
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if extra.get("deleting") else {}
    container = {"name": "app", "image": "example.com/app"} | ({"ports": extra["ports"]} if "ports" in extra else {})
    spec: Object = {"containers": [container]} | ({"nodeName": extra["node"]} if "node" in extra else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": _pod_status(extra)}


def replica_set(name: str = "web-1", size: int = 1, *, labels: dict[str, str] | None = None, **extra: Any) -> Object:
    """A ReplicaSet. `extra`: `available`, `ready`, `pods` (numbers of its status), `annotations`, `created_at` (ns),
    `template`, `owner`, `min_ready_s`, `generation`, `observed`."""
    labels = labels or {"app": "web"}
    metadata = _metadata(name, extra, extra.get("owner")) | {"labels": labels}
    metadata |= {"generation": extra["generation"]} if "generation" in extra else {}
    spec: Object = {"replicas": size, "selector": {"matchLabels": labels}}
    spec["template"] = extra.get("template") or pod_template(labels)
    spec |= {"minReadySeconds": extra["min_ready_s"]} if "min_ready_s" in extra else {}
    extra_names = {
        "replicas": "pods",
        "readyReplicas": "ready",
        "availableReplicas": "available",
        "observedGeneration": "observed",
    }
    status = {field: extra[name_in_extra] for field, name_in_extra in extra_names.items() if name_in_extra in extra}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec, "status": status}


def deployment(name: str = "web", replicas: int = 1, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Deployment with upstream's defaults; `spec` replaces or adds fields of its spec."""
    defaults: Object = {
        "replicas": replicas,
        "template": pod_template(labels or {"app": "web"}),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
    }
    return _workload("Deployment", name, labels or {"app": "web"}, defaults | spec)


def replication_controller(name: str = "old", replicas: int = 1, *, labels: dict[str, str] | None = None) -> Object:
    """A ReplicationController, whose selector is the labels."""
    labels = labels or {"app": name}
    spec: Object = {"replicas": replicas, "selector": labels, "template": pod_template(labels)}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": _metadata(name, {}, None), "spec": spec}


def stateful_set(name: str = "db", replicas: int = 3, *, partition: int = 0, **spec: Any) -> Object:
    """A StatefulSet with upstream's defaults; `spec` replaces or adds fields of its spec."""
    defaults: Object = {
        "replicas": replicas,
        "serviceName": name,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition, "maxUnavailable": 1}},
    }
    return _workload("StatefulSet", name, {"app": name}, defaults | spec)


def daemon_set(name: str = "agent", **spec: Any) -> Object:
    """A DaemonSet with upstream's defaults; `spec` replaces or adds fields of its spec."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    return _workload("DaemonSet", name, {"app": name}, {"updateStrategy": rolling, **spec})


def _workload(kind: str, name: str, labels: dict[str, str], spec: Object) -> Object:
    """An object of the group apps with these labels, in its selector and template; `spec` replaces other defaults."""
    defaults = {
        "selector": {"matchLabels": labels},
        "template": pod_template(labels, image="example.com/app:1"),
        "revisionHistoryLimit": 10,
    }
    metadata = _metadata(name, {}, None) | {"generation": 1}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": defaults | spec, "status": {}}


def _metadata(name: str, extra: dict[str, Any], owner: Object | None) -> Object:
    metadata: Object = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
    metadata |= {"annotations": extra["annotations"]} if "annotations" in extra else {}
    metadata |= {"creationTimestamp": rfc3339(extra["created_at"])} if "created_at" in extra else {}
    return metadata | ({"ownerReferences": [ownership.controller_reference(owner)]} if owner else {})


def pod_template(labels: dict[str, str], *, image: str = "example.com/app", **pod_spec: Any) -> Object:
    """A pod template with one container."""
    containers = [{"name": "app", "image": image}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers} | pod_spec}


def _pod_status(extra: dict[str, Any]) -> Object:
    """The status of a pod by the `extra` of `pod`; one with `ready_at` runs, and is ready."""
    status: Object = {"phase": extra.get("phase", "Running" if "ready_at" in extra else "Pending")}
    if "ip" in extra:
        status |= {"podIP": extra["ip"], "podIPs": [{"ip": extra["ip"]}]}
    if "ready_at" in extra:
        since = rfc3339(extra["ready_at"])
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    if "restarts" in extra:
        status["containerStatuses"] = [{"name": "app", "restartCount": extra["restarts"]}]
    return status
