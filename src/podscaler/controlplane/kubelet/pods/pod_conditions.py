"""The conditions of a pod: PodReadyToStartContainers, Initialized, Ready, ContainersReady, PodScheduled.

Called by `kubelet.pods.pod_status`. Pure. A condition keeps its lastTransitionTime while its status is the same;
conditions of other types are kept unchanged.

Source: Pod Lifecycle, "Pod conditions" and "Pod readiness" (Kubernetes documentation); PodCondition (API reference).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.base.clock import rfc3339
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role
from podscaler.controlplane.registry.registry import Object

_FINAL_REASONS = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
"""Final phase -> the reason of the conditions that are False in it."""


@dataclass(frozen=True, slots=True)
class PodReadiness:
    """The facts about the pod as a whole on which its conditions depend.

    Attributes:
        phase: the new status.phase.
        initialized: whether regular containers may run: all init containers have succeeded, all sidecars started.
        has_address: whether the pod has an IP address.
    """

    phase: str
    initialized: bool
    has_address: bool


@dataclass(frozen=True, slots=True)
class ConditionDraft:
    """One condition, before `_condition_json` adds lastTransitionTime and observedGeneration."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""


def conditions(
    pod: Object, containers: Sequence[ContainerState], readiness: PodReadiness, *, now_ns: int
) -> list[Object]:
    """All conditions of the pod as core/v1 PodConditions: those of this module, then other types of its status.

    Args:
        pod: the stored Pod, whose status has the former conditions.
        containers: all containers of the pod, in any order.

    A new condition: an entry of `own_drafts`.
    """
    former = {condition["type"]: condition for condition in (pod.get("status") or {}).get("conditions") or []}
    generation = pod["metadata"].get("generation")
    containers_ready = _containers_ready_condition(containers, readiness)
    own_drafts = [
        ConditionDraft("PodReadyToStartContainers", readiness.has_address and readiness.phase not in _FINAL_REASONS),
        _initialized_condition(containers, readiness),
        _ready_condition(pod, containers_ready, former),
        containers_ready,
        ConditionDraft("PodScheduled", True),
    ]
    own_conditions = [_condition_json(draft, former.get(draft.type), generation, now_ns) for draft in own_drafts]
    own_types = {draft.type for draft in own_drafts}
    return own_conditions + [condition for type_, condition in former.items() if type_ not in own_types]


def _initialized_condition(containers: Iterable[ContainerState], readiness: PodReadiness) -> ConditionDraft:
    """The condition Initialized: all init containers have succeeded, all sidecars have started."""
    if readiness.phase == "Succeeded":
        return ConditionDraft("Initialized", True, "PodCompleted")
    incomplete = [
        container.name for container in containers if container.role is not Role.MAIN and not _is_complete(container)
    ]
    if readiness.initialized or not incomplete:  # a pod may end before `initialized` is set
        return ConditionDraft("Initialized", True)
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return ConditionDraft("Initialized", False, "ContainersNotInitialized", message)


def _is_complete(container: ContainerState) -> bool:
    """Whether a sidecar has started, or an init container has succeeded."""
    if container.role is Role.SIDECAR:
        return container.started
    return container.is_final and container.exit_code == 0


def _containers_ready_condition(containers: Iterable[ContainerState], readiness: PodReadiness) -> ConditionDraft:
    """The condition ContainersReady, with the names of those that are not."""
    if readiness.phase in _FINAL_REASONS:
        return ConditionDraft("ContainersReady", False, _FINAL_REASONS[readiness.phase])
    unready = [container.name for container in containers if container.role is not Role.INIT and not container.ready]
    if unready:
        return ConditionDraft(
            "ContainersReady", False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
        )
    return ConditionDraft("ContainersReady", readiness.initialized)


def _ready_condition(
    pod: Object, containers_ready: ConditionDraft, former: Mapping[str, Mapping[str, Any]]
) -> ConditionDraft:
    """The condition Ready: ContainersReady and all readiness gates.

    Args:
        former: condition type -> the condition in the status of `pod`.
    """
    if not containers_ready.is_true:
        return ConditionDraft("Ready", False, containers_ready.reason, containers_ready.message)
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    gate_errors = [gate_error for gate in gates if (gate_error := _gate_error(gate, former.get(gate)))]
    if gate_errors:
        return ConditionDraft("Ready", False, "ReadinessGatesNotReady", ", ".join(gate_errors))
    return ConditionDraft("Ready", True)


def _gate_error(gate: str, condition: Mapping[str, Any] | None) -> str:
    """Why the readiness gate of this condition type is not met, empty if it is; `condition` is that of the pod."""
    if condition is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if condition.get("status") != "True":
        return f'the status of pod readiness gate "{gate}" is not "True", but {condition.get("status", "")}'
    return ""


def _condition_json(
    draft: ConditionDraft, former: Mapping[str, Any] | None, generation: int | None, now_ns: int
) -> Object:
    """The core/v1 PodCondition of a draft.

    Args:
        former: the stored condition of this type, whose transition time is kept while the status stays; None: none.
        generation: the pod's metadata.generation.
    """
    status = "True" if draft.is_true else "False"
    transition_time = rfc3339(now_ns)
    if former is not None and former.get("status") == status:
        transition_time = former["lastTransitionTime"]
    condition: Object = {
        "type": draft.type,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": transition_time,
    }
    if draft.reason:
        condition["reason"] = draft.reason
    if draft.message:
        condition["message"] = draft.message
    if generation:
        condition["observedGeneration"] = generation
    return condition
