"""Checks the pods of an autoscaler's target: pending, crashing, not ready, without requests; pure.

Called by `podscaler.cli.diagnosis.examination`. The state of a pod is the word that `kubectl get pods` prints. Pods
with the same state and trouble are one finding, which names some of them. A new kind of trouble: a case in `_trouble`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from podscaler.api.kinds.pods import pod_table
from podscaler.base.clock import NANOSECONDS
from podscaler.cli.diagnosis import events
from podscaler.cli.diagnosis.autoscaler_objects import JsonObject, name_of
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.explain import wording

STARTING_NS = 60 * NANOSECONDS
"""A pod that is not ready, or not running, is no finding for so long after its start or creation."""
SHOWN_PODS_MAX = 3
_HEALTHY_STATES = frozenset({"Running", "Completed", "Succeeded", "Terminating"})
_STATES_WITH_LOGS = frozenset({"CrashLoopBackOff", "Error", "OOMKilled", "StartError", "ContainerStatusUnknown"})
"""States whose finding advises to read the logs of the previous container."""
_MEMORY_KILL = "was killed for memory"
"""In the trouble of a pod with such a container; its finding gives other advice."""


class _MissingRequest(NamedTuple):
    """A resource that a container does not request, and a sentence about the container and its pods."""

    resource: str
    sentence: str


def check(pods: Sequence[JsonObject] | None, resources: Sequence[str], now_ns: int) -> CheckResult:
    """The states of the pods.

    Args:
        pods: of the target, as the API has them; None if they are not known.
        resources: those whose utilization the autoscaler uses: each container needs a request of them.
        now_ns: since the epoch.
    """
    if not pods:
        return CheckResult(section("Pods", [("", "not known" if pods is None else "none")]))
    by_trouble: dict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for pod in pods:
        state, trouble = _state(pod, now_ns), _trouble(pod, now_ns)
        counts[state] += 1
        if trouble:
            by_trouble[state, trouble].append(pod)
    lines = [("pods", ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))]
    lines += [(state, f"{_names(affected)}: {trouble}") for (state, trouble), affected in by_trouble.items()]
    missing_requests = list(_missing_requests(pods, resources))
    lines += [("requests", missing_request.sentence) for missing_request in missing_requests]
    findings = [_trouble_finding(state, trouble, affected) for (state, trouble), affected in by_trouble.items()]
    findings += map(_request_finding, missing_requests)
    return CheckResult(section("Pods", lines), tuple(findings))


def _state(pod: JsonObject, now_ns: int) -> str:
    """The word of kubectl's column STATUS, but `Ready` or `NotReady` in place of `Running`."""
    _, _, status_word, *_ = pod_table.PRINTER.row(dict(pod), now_ns)  # NAME, READY, STATUS, ...
    if status_word == "Running":
        return "Ready" if _condition(pod, "Ready").get("status") == "True" else "NotReady"
    return str(status_word)


def _trouble(pod: JsonObject, now_ns: int) -> str:
    """What is wrong with a pod, a phrase; empty if nothing is, or it started less than STARTING_NS ago."""
    state = _state(pod, now_ns)
    if state == "Ready":
        return _memory_kill(pod, now_ns)
    if state == "NotReady":
        started_ns = events.instant_ns((pod.get("status") or {}).get("startTime"))
        if started_ns is not None and now_ns - started_ns < STARTING_NS:
            return ""
        reason = str(_condition(pod, "Ready").get("message") or "its readiness probe fails")
        return reason + _memory_kill(pod, now_ns, separator="; ")
    if state in _HEALTHY_STATES:
        return ""
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason") or "it is not scheduled")
    if state in ("Pending", "ContainerCreating", "PodInitializing"):
        created_ns = events.instant_ns(pod.get("metadata", {}).get("creationTimestamp"))
        if created_ns is not None and now_ns - created_ns < STARTING_NS:
            return ""
    return _container_trouble(pod) or str((pod.get("status") or {}).get("message") or state)


def _container_trouble(pod: JsonObject) -> str:
    """Why a container waits or ended, with how often it was restarted; empty if none does."""
    for container in _containers(pod):
        state = container.get("state") or {}
        for phase in ("waiting", "terminated"):
            phase_state = state.get(phase) or {}
            if phase_state.get("reason") not in (None, "Completed"):
                restarts = container.get("restartCount", 0)
                times = f", restarted {wording.count(restarts, 'time')}" if restarts else ""
                return (
                    f"container {container.get('name')}: {phase_state.get('message') or phase_state['reason']}{times}"
                )
    return ""


def _memory_kill(pod: JsonObject, now_ns: int, *, separator: str = "") -> str:
    """The separator and a phrase that a container was killed for memory within the last hour; empty if none was."""
    for container in _containers(pod):
        ended = (container.get("lastState") or {}).get("terminated") or {}
        ended_ns = events.instant_ns(ended.get("finishedAt"))
        if ended.get("reason") == "OOMKilled" and ended_ns is not None and now_ns - ended_ns < events.RECENT_NS:
            return f"{separator}container {container.get('name')} {_MEMORY_KILL} {wording.age(ended_ns, now_ns)}"
    return ""


def _containers(pod: JsonObject) -> list[Mapping[str, Any]]:
    """The statuses of a pod's containers as JSON objects, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _condition(pod: JsonObject, condition_type: str) -> Mapping[str, Any]:
    """The condition of a pod of that type as its JSON object; empty if there is none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == condition_type), {})


def _missing_requests(pods: Sequence[JsonObject], resources: Sequence[str]) -> Iterator[_MissingRequest]:
    """For each resource and container without its request: `container main of web-1, ... requests no cpu`."""
    for resource in dict.fromkeys(resources):
        by_container: dict[str, list[JsonObject]] = defaultdict(list)
        for pod in pods:
            spec = pod.get("spec") or {}
            if (spec.get("resources") or {}).get("requests"):  # of the pod as a whole, which suffice
                continue
            init_containers = spec.get("initContainers") or ()
            sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
            for container in (*(spec.get("containers") or ()), *sidecars):
                if resource not in ((container.get("resources") or {}).get("requests") or {}):
                    by_container[str(container.get("name"))].append(pod)
        for name, pods_without in by_container.items():
            sentence = f"container {name} of {_names(pods_without)} requests no {resource}"
            yield _MissingRequest(resource, sentence)


def _request_finding(missing_request: _MissingRequest) -> DoctorFinding:
    """The finding for a container without request."""
    return DoctorFinding(
        FindingLevel.ERROR,
        Area.PODS,
        f"{missing_request.sentence}, so that its utilization is not known",
        f"set resources.requests.{missing_request.resource} of this container in the target's pod template",
    )


def _trouble_finding(state: str, trouble: str, pods: Sequence[JsonObject]) -> DoctorFinding:
    """The finding for pods that have the same state and trouble, with the command that shows more."""
    first_pod, namespace = pods[0], str(pods[0].get("metadata", {}).get("namespace", ""))
    command = f"kubectl -n {namespace} describe pod {name_of(first_pod)}"
    is_memory_kill = _MEMORY_KILL in trouble
    if state in _STATES_WITH_LOGS or is_memory_kill:
        command = f"kubectl -n {namespace} logs {name_of(first_pod)} --all-containers --previous"
    if is_memory_kill:
        command = f"raise the memory limit of that container, or find the leak: {command}"
    level = FindingLevel.WARNING if state in ("Ready", "NotReady") else FindingLevel.ERROR
    subject = wording.count(len(pods), "pod")
    verb = "is" if len(pods) == 1 else "are"
    return DoctorFinding(level, Area.PODS, f"{subject} {verb} {state} ({_names(pods)}): {trouble}", command)


def _names(pods: Sequence[JsonObject]) -> str:
    return wording.listed(sorted(map(name_of, pods)), SHOWN_PODS_MAX)
