"""Selects the nodes of a DaemonSet's pods and makes the pod for a node.

`daemonset_planning` and `daemonset` call it. A node is eligible if it has the labels of the template's nodeSelector and
no taint that the pods do not tolerate; daemon pods tolerate the taints of node conditions (`_CONDITION_TAINTS`). The
functions are pure. Another rule of eligibility belongs in `_allows_pod`.

Source: documentation of DaemonSet ("How Daemon Pods are scheduled", "Taints and tolerations").
Differs: the controller itself sets `spec.nodeName`; required node affinity is ignored.
"""

from collections.abc import Sequence
from typing import Any

from podscaler.api.kinds.apps import daemonset as daemonset_kind
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import controller_revisions, templates

GENERATION_LABEL = "pod-template-generation"
_CONDITION_TAINTS = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints that every daemon pod tolerates: the name after `node.kubernetes.io/`, and the effect."""


def should_run(daemon_set: Object, node: Object) -> bool:
    """Whether a pod should be started on the node."""
    return _allows_pod(daemon_set, node, ("NoSchedule", "NoExecute"))


def may_stay(daemon_set: Object, node: Object) -> bool:
    """Whether a pod that is on the node may keep running, which taints with the effect NoSchedule do not prevent."""
    return _allows_pod(daemon_set, node, ("NoExecute",))


def scheduling_facts(node: Object) -> Object:
    """The labels and taints of a node; a change of anything else needs no sync."""
    spec = node.get("spec") or {}
    return {"labels": node["metadata"].get("labels"), "taints": spec.get("taints")}


def new_pod(daemon_set: Object, revision: Object, node_name: str) -> Object:
    """The manifest of the pod for a node, from the template of a ControllerRevision."""
    pod = templates.pod_from(controller_revisions.template_of(revision), daemon_set)
    labels = {
        **(pod["metadata"].get("labels") or {}),
        controller_revisions.POD_LABEL: controller_revisions.hash_of(revision),
        GENERATION_LABEL: str(daemonset_kind.template_generation(daemon_set)),
    }
    spec = {**pod["spec"], "nodeName": node_name, "tolerations": _all_tolerations(pod["spec"])}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}


def node_of(pod: Object) -> str:
    """The name of the node of a pod, empty without one."""
    return str(pod["spec"].get("nodeName") or "")


def _all_tolerations(spec: Object) -> list[Object]:
    """The tolerations in the spec of the pod template, and those of every daemon pod."""
    tolerations: list[Object] = list(spec.get("tolerations") or [])
    host_network_taints = [("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else []
    for name, effect in (*_CONDITION_TAINTS, *host_network_taints):
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return tolerations


def _allows_pod(daemon_set: Object, node: Object, effects: Sequence[str]) -> bool:
    """Whether a pod may be on a node, by name, labels and taints with those effects."""
    spec = daemon_set["spec"]["template"].get("spec") or {}
    metadata = node["metadata"]
    if spec.get("nodeName") not in (None, "", metadata["name"]):
        return False
    if not (spec.get("nodeSelector") or {}).items() <= (metadata.get("labels") or {}).items():
        return False
    tolerations = _all_tolerations(spec)
    all_taints = (node.get("spec") or {}).get("taints") or []
    taints = [taint for taint in all_taints if taint.get("effect") in effects]
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: Object, taint: dict[str, Any]) -> bool:
    """Whether a toleration matches a taint; an empty key, value or effect of the toleration matches any."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
