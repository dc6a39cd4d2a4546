"""Names, ordinals, labels and manifests of the pods of a StatefulSet; `statefulset_planning` and `statefulset` call it.

A pod is named `NAME-ORDINAL`, also as its hostname. The functions are pure; StatefulSets, revisions and pods are JSON
objects with all defaults. `identity_labels` and `new_pod` have all that identifies a pod.

Source: documentation of StatefulSet ("Pod Identity", "Start ordinal", "Pod name label", "Pod index label").
Differs: there are no PersistentVolumes: a claim becomes an emptyDir, which is deleted with its pod.
"""

from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import controller_revisions, pods, templates

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def ordinals(stateful_set: Object) -> range:
    """The ordinals of the desired pods; without `spec.replicas` there is one."""
    replicas = stateful_set["spec"].get("replicas")
    start = int((stateful_set["spec"].get("ordinals") or {}).get("start", 0))
    return range(start, start + (1 if replicas is None else int(replicas)))


def is_parallel(stateful_set: Object) -> bool:
    """Whether `podManagementPolicy` is Parallel: pods are created and deleted without waiting for one another."""
    return bool(stateful_set["spec"].get("podManagementPolicy") == "Parallel")


def min_ready_s(stateful_set: Object) -> int:
    """`spec.minReadySeconds`: how long a pod must be ready to be available."""
    return int(stateful_set["spec"].get("minReadySeconds", 0))


def ordinal(stateful_set: Object, pod_name: str) -> int | None:
    """The ordinal in the name of one of the set's pods, None for a name that none of them can have."""
    set_name, _, digits = pod_name.rpartition("-")
    if set_name != stateful_set["metadata"]["name"] or not digits.isdecimal() or not digits.isascii():
        return None
    has_leading_zero = str(int(digits)) != digits
    return None if has_leading_zero else int(digits)


def revision_name(pod: Object) -> str:
    """The name of the revision that a pod was created from, empty without the label."""
    return str((pod["metadata"].get("labels") or {}).get(controller_revisions.POD_LABEL, ""))


def is_healthy(stateful_set: Object, pod: Object, now_ns: int) -> bool:
    """Whether a pod is available and not terminating."""
    return not pods.is_terminating(pod) and is_available(stateful_set, pod, now_ns)


def is_available(stateful_set: Object, pod: Object, now_ns: int) -> bool:
    """Whether a pod is available: Running and ready for `minReadySeconds`."""
    return pods.phase(pod) == "Running" and pods.is_available(pod, min_ready_s(stateful_set), now_ns)


def new_pod(stateful_set: Object, revision: Object, pod_ordinal: int) -> Object:
    """The manifest of the pod with an ordinal, from the template of a ControllerRevision."""
    pod = templates.pod_from(controller_revisions.template_of(revision), stateful_set)
    metadata = pod["metadata"]
    del metadata["generateName"]
    metadata["name"] = pod_name = f"{stateful_set['metadata']['name']}-{pod_ordinal}"
    labels = {**(metadata.get("labels") or {}), controller_revisions.POD_LABEL: revision["metadata"]["name"]}
    metadata["labels"] = {**labels, **identity_labels(stateful_set, pod_ordinal)}
    spec: dict[str, Any] = {**pod["spec"], "hostname": pod_name}
    if service_name := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service_name
    return {**pod, "spec": _with_claim_directories(stateful_set, spec)}


def identity_labels(stateful_set: Object, pod_ordinal: int) -> dict[str, str]:
    """The labels with the name and the ordinal of a pod, by which Services select single pods."""
    return {NAME_LABEL: f"{stateful_set['metadata']['name']}-{pod_ordinal}", INDEX_LABEL: str(pod_ordinal)}


def claim_names(stateful_set: Object) -> list[str]:
    """The names of the volumeClaimTemplates, which are also the names of the volumes."""
    claims = stateful_set["spec"].get("volumeClaimTemplates") or []
    return [(claim.get("metadata") or {}).get("name", "") for claim in claims]


def _with_claim_directories(stateful_set: Object, spec: Object) -> Object:
    """A pod's spec with an emptyDir for each volumeClaimTemplate, in place of volumes of the same name."""
    names = claim_names(stateful_set)
    if not names:
        return spec
    other_volumes = [volume for volume in spec.get("volumes") or [] if volume.get("name") not in names]
    return {**spec, "volumes": other_volumes + [{"name": name, "emptyDir": {}} for name in names]}
