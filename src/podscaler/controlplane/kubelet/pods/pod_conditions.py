"""The conditions of a pod: PodReadyToStartContainers, Initialized, Ready, ContainersReady, PodScheduled.

Called by `pod_status`. Pure. A condition keeps its lastTransitionTime while its status is the same; conditions of other
types are kept unchanged.

Source: Pod Lifecycle, "Pod conditions" and "Pod readiness" (Kubernetes documentation); PodCondition (API reference).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.base.clock import rfc3339
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role
from podscaler.controlplane.registry.registry import Object

_ENDED = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


@dataclass(frozen=True, slots=True)
class PodReadiness:
    """The facts about the pod as a whole on which its conditions depend.

    Attributes:
        phase: the new status.phase.
        initialized: whether all init containers have succeeded (sidecars: have started).
        has_address: whether the pod has an IP address.
    """

    phase: str
    initialized: bool
    has_address: bool


@dataclass(frozen=True, slots=True)
class ConditionDraft:
    """One condition, before `_shown` adds lastTransitionTime and observedGeneration."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""


def conditions(
    pod: Object, containers: Sequence[ContainerState], verdict: PodReadiness, *, now_ns: int
) -> list[Object]:
    """All conditions of the pod: those of this module, then those of other types in its status."""
    former = {entry["type"]: entry for entry in (pod.get("status") or {}).get("conditions") or []}
    generation = pod["metadata"].get("generation")
    containers_ready = _containers_ready(containers, verdict)
    own = [
        ConditionDraft("PodReadyToStartContainers", verdict.has_address and verdict.phase not in _ENDED),
        _initialized(containers, verdict),
        _ready(pod, containers_ready, former),
        containers_ready,
        ConditionDraft("PodScheduled", True),
    ]
    shown = [_shown(condition, former.get(condition.type), generation, now_ns) for condition in own]
    names = {condition.type for condition in own}
    return shown + [entry for type_, entry in former.items() if type_ not in names]


def _initialized(containers: Iterable[ContainerState], verdict: PodReadiness) -> ConditionDraft:
    """The condition Initialized: all init containers have ended, all sidecars have started."""
    if verdict.phase == "Succeeded":
        return ConditionDraft("Initialized", True, "PodCompleted")
    incomplete = [c.name for c in containers if c.role is not Role.MAIN and not _is_through(c)]
    if verdict.initialized or not incomplete:  # a pod may end before `initialized` is set
        return ConditionDraft("Initialized", True)
    text = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return ConditionDraft("Initialized", False, "ContainersNotInitialized", text)


def _is_through(container: ContainerState) -> bool:
    if container.role is Role.SIDECAR:
        return container.started
    return container.is_final and container.exit_code == 0


def _containers_ready(containers: Iterable[ContainerState], verdict: PodReadiness) -> ConditionDraft:
    """The condition ContainersReady, with the names of those that are not."""
    if verdict.phase in _ENDED:
        return ConditionDraft("ContainersReady", False, _ENDED[verdict.phase])
    unready = [c.name for c in containers if c.role is not Role.INIT and not c.ready]
    if unready:
        return ConditionDraft(
            "ContainersReady", False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
        )
    return ConditionDraft("ContainersReady", verdict.initialized)


def _ready(pod: Object, containers_ready: ConditionDraft, former: Mapping[str, Mapping[str, Any]]) -> ConditionDraft:
    """The condition Ready: ContainersReady and all readiness gates."""
    if not containers_ready.is_true:
        return ConditionDraft("Ready", False, containers_ready.reason, containers_ready.message)
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    messages = [text for gate in gates if (text := _gate_fault(gate, former.get(gate)))]
    if messages:
        return ConditionDraft("Ready", False, "ReadinessGatesNotReady", ", ".join(messages))
    return ConditionDraft("Ready", True)


def _gate_fault(gate: str, condition: Mapping[str, Any] | None) -> str:
    if condition is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if condition.get("status") != "True":
        return f'the status of pod readiness gate "{gate}" is not "True", but {condition.get("status", "")}'
    return ""


def _shown(condition: ConditionDraft, former: Mapping[str, Any] | None, generation: int | None, now_ns: int) -> Object:
    """The condition as it stands in the status; it keeps its transition time while its status stays."""
    status = "True" if condition.is_true else "False"
    same = former is not None and former.get("status") == status
    entry: Object = {
        "type": condition.type,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": former["lastTransitionTime"] if same and former else rfc3339(now_ns),
    }
    if condition.reason:
        entry["reason"] = condition.reason
    if condition.message:
        entry["message"] = condition.message
    if generation:
        entry["observedGeneration"] = generation
    return entry
