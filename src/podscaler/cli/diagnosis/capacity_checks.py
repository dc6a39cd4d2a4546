"""Checks whether there is room for maxReplicas: quotas with their use, LimitRanges, and the nodes; pure.

Called by `podscaler.cli.diagnosis.examination`. Each finding is certain, but not every lack of room is found: quotas
with scopes, node selectors, affinities, taints and the pods that run on the nodes already are not considered. A
further limit is a `_check_` function in the loop of `check`.

Source: the documentation of ResourceQuota and LimitRange.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from podscaler.api.machinery import quantity
from podscaler.cli.diagnosis.autoscaler_objects import JsonObject, name_of
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.explain import wording
from podscaler.lint.model.workloads import Workload

ONE_POD_MILLI = 1000
_POD_COUNT_RESOURCES = ("pods", "count/pods")
"""The resources of a ResourceQuota that count pods."""


@dataclass(frozen=True, slots=True)
class CapacityFacts:
    """The input of `check`.

    Attributes:
        namespace: of the autoscaler.
        kubectl_name: the autoscaler in commands, `hpa web`.
        replicas: of the target now.
        max_replicas: of the autoscaler.
        workload: the target with the requests of a pod; None: not known.
        quotas, limit_ranges: of the namespace; None if they may not be read.
        nodes: None if they may not be read.
    """

    namespace: str
    kubectl_name: str
    replicas: int
    max_replicas: int
    workload: Workload | None
    quotas: Sequence[JsonObject] | None
    limit_ranges: Sequence[JsonObject] | None
    nodes: Sequence[JsonObject] | None


def check(facts: CapacityFacts) -> CheckResult:
    """The room in quotas, LimitRanges and on nodes for the pods that are missing to maxReplicas."""
    lines = [("now", f"{facts.replicas} of at most {wording.count(facts.max_replicas, 'replica')}")]
    findings: list[DoctorFinding] = []
    if facts.workload is None:
        lines.append(("", "the requests of a pod are not known"))
    else:
        for check_part in (_check_quotas, _check_limit_ranges, _check_nodes):
            for checked_line in check_part(facts, facts.workload):
                lines.append((checked_line.label, checked_line.text))
                if checked_line.finding is not None:
                    findings.append(checked_line.finding)
    return CheckResult(section("Capacity", lines), tuple(findings))


class _CheckedLine(NamedTuple):
    """A line of the section; `finding`: what is wrong about it, None if nothing is."""

    label: str
    text: str
    finding: DoctorFinding | None = None


def _check_quotas(facts: CapacityFacts, workload: Workload) -> Iterator[_CheckedLine]:
    """How many more pods each quota allows, with a finding if that is too few for maxReplicas."""
    if facts.quotas is None:
        return
    missing_pods = max(facts.max_replicas - facts.replicas, 0)
    for quota in facts.quotas:
        spec = quota.get("spec") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            yield _CheckedLine(f"quota {name_of(quota)}", "has scopes, and is not considered")
            continue
        used = (quota.get("status") or {}).get("used") or {}
        for resource, hard in (spec.get("hard") or {}).items():
            used_text = used.get(resource, "0")
            room = _room_in_quota(resource, hard, used_text, workload)
            if room is None:
                continue
            description = f"{resource}: {used_text} of {hard} used, room for {wording.count(room, 'more pod')}"
            finding = _quota_finding(facts, quota, resource, room) if room < missing_pods else None
            yield _CheckedLine(f"quota {name_of(quota)}", description, finding)
    if not facts.quotas:
        yield _CheckedLine("quotas", "none")


def _room_in_quota(resource: str, hard: Any, used: Any, workload: Workload) -> int | None:
    """How many more pods a resource of a quota allows; None if it does not limit them, or cannot be parsed."""
    pod_milli = _pod_milli(resource, workload)
    try:
        free_milli = quantity.milli(str(hard)) - quantity.milli(str(used))
    except ValueError:
        return None
    return max(free_milli, 0) // pod_milli if pod_milli else None


def _pod_milli(quota_resource: str, workload: Workload) -> int:
    """What one pod uses of a quota's resource, in thousandths; 0 if that is not known, as for pod-level resources."""
    if quota_resource in _POD_COUNT_RESOURCES:
        return ONE_POD_MILLI
    prefix, _, resource_name = quota_resource.rpartition(".")  # `cpu` means `requests.cpu`
    if prefix not in ("", "requests", "limits") or workload.has_pod_resources:
        return 0
    return sum(container.amount_milli(prefix or "requests", resource_name) or 0 for container in workload.containers)


def _quota_finding(facts: CapacityFacts, quota: JsonObject, resource: str, room: int) -> DoctorFinding:
    """The finding that a quota has room for too few pods; an error if it has room for none."""
    message = (
        f"ResourceQuota {name_of(quota)} has room for {wording.count(room, 'more pod')} by {resource}, but maxReplicas "
        f"{facts.max_replicas} needs {facts.max_replicas - facts.replicas} more"
    )
    fix = f"kubectl -n {facts.namespace} edit resourcequota {name_of(quota)} (raise {resource}), or lower maxReplicas"
    return DoctorFinding(FindingLevel.WARNING if room else FindingLevel.ERROR, Area.CAPACITY, message, fix)


def _check_limit_ranges(facts: CapacityFacts, workload: Workload) -> Iterator[_CheckedLine]:
    """The containers of the workload that are larger than a LimitRange allows, with a finding each."""
    for limit_range in facts.limit_ranges or ():
        for limit in (limit_range.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Container":
                yield from _check_limit(facts, workload, limit_range, limit)


def _check_limit(
    facts: CapacityFacts, workload: Workload, limit_range: JsonObject, limit: Mapping[str, Any]
) -> Iterator[_CheckedLine]:
    """The containers for which a LimitRange allows less than they ask for."""
    for resource, max_quantity in (limit.get("max") or {}).items():
        for container in workload.containers:
            limit_milli = container.amount_milli("limits", resource)  # without a limit the request counts
            requested_milli = limit_milli or container.amount_milli("requests", resource)
            if requested_milli is None or requested_milli <= _milli_or_zero(max_quantity):
                continue
            amount_text = wording.amount(requested_milli, resource)
            message = (
                f"LimitRange {name_of(limit_range)} allows a container {max_quantity} of {resource}, but container "
                f"{container.name} of the pod template asks for {amount_text}: no pod can be created"
            )
            fix = f"lower {resource} of container {container.name}, or kubectl -n {facts.namespace} edit limitrange "
            finding = DoctorFinding(FindingLevel.ERROR, Area.CAPACITY, message, fix + name_of(limit_range))
            description = f"{resource} of {container.name}: {amount_text}, allowed {max_quantity}"
            yield _CheckedLine(f"limit {name_of(limit_range)}", description, finding)


def _check_nodes(facts: CapacityFacts, workload: Workload) -> Iterator[_CheckedLine]:
    """How many pods of this size the usable nodes could hold if they were empty."""
    if facts.nodes is None:
        return
    usable = [node for node in facts.nodes if _is_usable(node)]
    room = sum(_room_on_node(node, workload) for node in usable)
    description = (
        f"{len(usable)} of {wording.count(len(facts.nodes), 'node')} usable, room for {room} such pods if empty"
    )
    finding = None
    if room < facts.max_replicas:
        message = (
            f"the nodes have room for {room} pods of this size if they were empty, but maxReplicas is "
            f"{facts.max_replicas}"
        )
        patch = f"kubectl -n {facts.namespace} patch {facts.kubectl_name} --type merge -p "
        fix = f'add nodes, or lower maxReplicas: {patch}\'{{"spec":{{"maxReplicas":{max(room, 1)}}}}}\''
        finding = DoctorFinding(FindingLevel.WARNING, Area.CAPACITY, message, fix)
    yield _CheckedLine("nodes", description, finding)


def _is_usable(node: JsonObject) -> bool:
    """Whether pods can be scheduled to a node: it is ready and not cordoned."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
    return is_ready and not (node.get("spec") or {}).get("unschedulable")


def _room_on_node(node: JsonObject, workload: Workload) -> int:
    """How many pods of the target an empty node has room for."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    pods_by_limit = [_milli_or_zero(allocatable.get("pods", "0")) // ONE_POD_MILLI]
    for resource in ("cpu", "memory"):
        pod_milli = sum(container.amount_milli("requests", resource) or 0 for container in workload.containers)
        if pod_milli and resource in allocatable:
            pods_by_limit.append(_milli_or_zero(allocatable[resource]) // pod_milli)
    return max(min(pods_by_limit), 0)


def _milli_or_zero(quantity_text: Any) -> int:
    """A quantity in thousandths; 0 if it cannot be read."""
    try:
        return quantity.milli(str(quantity_text))
    except ValueError:
        return 0
