"""Names, ordinals, labels and bodies of the pods of a StatefulSet; the planning and the controller call it.

A pod is named `NAME-ORDINAL`, also as its hostname. The functions are pure.

Source: documentation of StatefulSet ("Pod Identity", "Start ordinal", "Pod name label", "Pod index label").
Differs: there are no PersistentVolumes: a claim becomes an emptyDir, which is deleted with its pod.
"""

from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import controller_revisions, pods, templates

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def replicas(stateful_set: Object) -> int:
    """`spec.replicas`, 1 where it is not set."""
    wanted = stateful_set["spec"].get("replicas")
    return 1 if wanted is None else int(wanted)


def ordinals(stateful_set: Object) -> range:
    """The ordinals of the desired pods."""
    first = int((stateful_set["spec"].get("ordinals") or {}).get("start", 0))
    return range(first, first + replicas(stateful_set))


def is_parallel(stateful_set: Object) -> bool:
    """Whether its podManagementPolicy is Parallel: pods are created and deleted without waiting for one another."""
    return bool(stateful_set["spec"].get("podManagementPolicy") == "Parallel")


def min_ready_s(stateful_set: Object) -> int:
    """`spec.minReadySeconds`: how long a pod must be ready to be available."""
    return int(stateful_set["spec"].get("minReadySeconds", 0))


def ordinal(stateful_set: Object, pod_name: str) -> int | None:
    """The ordinal in the name of one of its pods, None for a name that none of its pods can have."""
    parent, dash, number = pod_name.rpartition("-")
    if parent != stateful_set["metadata"]["name"] or not dash or not number.isdecimal() or not number.isascii():
        return None
    return int(number) if str(int(number)) == number else None


def revision_name(pod: Object) -> str:
    """The name of the revision that a pod was created from, empty without the label."""
    return str((pod["metadata"].get("labels") or {}).get(controller_revisions.POD_LABEL, ""))


def is_healthy(stateful_set: Object, pod: Object, now_ns: int) -> bool:
    """Whether a pod is available and not terminating."""
    return not pods.is_terminating(pod) and is_serving(stateful_set, pod, now_ns)


def is_serving(stateful_set: Object, pod: Object, now_ns: int) -> bool:
    """Whether a pod is available: Running and ready for `minReadySeconds`."""
    return pods.phase(pod) == "Running" and pods.is_available(pod, min_ready_s(stateful_set), now_ns)


def new_pod(stateful_set: Object, revision: Object, number: int) -> Object:
    """The pod with the ordinal `number`, created from the revision's template."""
    made = templates.pod_from(controller_revisions.template_of(revision), stateful_set)
    metadata = made["metadata"]
    del metadata["generateName"]
    metadata["name"] = name = f"{stateful_set['metadata']['name']}-{number}"
    labels = {**(metadata.get("labels") or {}), controller_revisions.POD_LABEL: revision["metadata"]["name"]}
    metadata["labels"] = {**labels, **identity(stateful_set, number)}
    spec: dict[str, Any] = {**made["spec"], "hostname": name}
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    return {**made, "spec": _with_directories(stateful_set, spec)}


def identity(stateful_set: Object, number: int) -> dict[str, str]:
    """The labels of pod name and index."""
    return {NAME_LABEL: f"{stateful_set['metadata']['name']}-{number}", INDEX_LABEL: str(number)}


def claim_names(stateful_set: Object) -> list[str]:
    """The names of its volumeClaimTemplates, which are also the names of the volumes."""
    claims = stateful_set["spec"].get("volumeClaimTemplates") or []
    return [(claim.get("metadata") or {}).get("name", "") for claim in claims]


def _with_directories(stateful_set: Object, spec: Object) -> Object:
    names = claim_names(stateful_set)
    if not names:
        return spec
    kept = [volume for volume in spec.get("volumes") or [] if volume.get("name") not in names]
    return {**spec, "volumes": kept + [{"name": name, "emptyDir": {}} for name in names]}
