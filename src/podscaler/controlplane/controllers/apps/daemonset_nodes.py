"""Which nodes a DaemonSet's pods belong on, and the pod for one of them; its planning and controller call it.

Pure. A node is wanted when it has the labels that the template selects and no taint that the pods do not tolerate;
daemon pods tolerate what the node's own troubles put on it.
Source: documentation of DaemonSet ("How Daemon Pods are scheduled", "Taints and tolerations").
Differs: the controller itself puts the pod on its node (`spec.nodeName`); required node affinity is not looked at.
"""

from collections.abc import Sequence
from typing import Any

from podscaler.api.kinds.apps import daemonset as record
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import controller_revisions, templates

GENERATION_LABEL = "pod-template-generation"
_TROUBLES = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def should_run(daemon_set: Object, node: Object) -> bool:
    """Whether a pod should be started on the node."""
    return _fits(daemon_set, node, ("NoSchedule", "NoExecute"))


def may_stay(daemon_set: Object, node: Object) -> bool:
    """Whether a pod that is on the node already may go on."""
    return _fits(daemon_set, node, ("NoExecute",))


def facets(node: Object) -> Object:
    """The part of a node that decides; nothing has to be done for a change of anything else."""
    spec = node.get("spec") or {}
    return {"labels": node["metadata"].get("labels"), "taints": spec.get("taints")}


def new_pod(daemon_set: Object, revision: Object, node_name: str) -> Object:
    """The pod for a node, made of the revision's template."""
    made = templates.pod_from(controller_revisions.template_of(revision), daemon_set)
    labels = {
        **(made["metadata"].get("labels") or {}),
        controller_revisions.POD_LABEL: controller_revisions.hash_of(revision),
        GENERATION_LABEL: str(record.template_generation(daemon_set)),
    }
    spec = {**made["spec"], "nodeName": node_name, "tolerations": _tolerations(made["spec"])}
    return {**made, "metadata": {**made["metadata"], "labels": labels}, "spec": spec}


def node_of(pod: Object) -> str:
    """The name of the node that it is on, or meant for."""
    return str(pod["spec"].get("nodeName") or "")


def _tolerations(spec: Object) -> list[Object]:
    given: list[Object] = list(spec.get("tolerations") or [])
    troubles = [*_TROUBLES, ("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else _TROUBLES
    for name, effect in troubles:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in given:
            given.append(toleration)
    return given


def _fits(daemon_set: Object, node: Object, effects: Sequence[str]) -> bool:
    spec = daemon_set["spec"]["template"].get("spec") or {}
    metadata = node["metadata"]
    if spec.get("nodeName") not in (None, "", metadata["name"]):
        return False
    if not (spec.get("nodeSelector") or {}).items() <= (metadata.get("labels") or {}).items():
        return False
    tolerations = _tolerations(spec)
    taints = (node.get("spec") or {}).get("taints") or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.get("effect") in effects
    )


def _tolerates(toleration: Object, taint: dict[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
