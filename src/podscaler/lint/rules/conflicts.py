"""Lint rules about objects that conflict: PSL007 selectors, PSL008 autoscalers, PSL012 a VerticalPodAutoscaler.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/decision.md 3.1 (Selector checks): autoscalers that select the same pods all stop; the README of
the vertical autoscaler; KEDA's ScaledObject, which creates an autoscaler.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from podscaler.lint.model import workloads
from podscaler.lint.model.findings import RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import Item, Key, group_of, mapping, mappings, text
from podscaler.lint.model.workloads import Workload

SHOWN_MAX = 3
"""How many objects a message lists."""
_DEFAULT_RESOURCES = ("cpu", "memory")
"""The resources whose requests a VerticalPodAutoscaler changes by default."""
_LabelKey = tuple[str, str, str]
"""Namespace, and key and value of a label."""


@rule(
    "PSL007", "overlapping-selectors", Severity.ERROR, "The selector of one autoscaled workload picks pods of another."
)
def overlapping_selectors(context: LintContext) -> Iterator[RuleFinding]:
    """PSL007: targets of two autoscalers whose selectors pick each other's pods."""
    first_by_target: dict[Key, tuple[LintedAutoscaler, Workload]] = {}
    for autoscaler in context.autoscalers:
        workload = workloads.target_of(autoscaler, context)
        if workload:
            first_by_target.setdefault(workload.item.key, (autoscaler, workload))
    by_label = _index_by_label([workload for _, workload in first_by_target.values()])
    for autoscaler, workload in first_by_target.values():
        picked_workloads = [candidate for candidate in _candidates(workload, by_label) if _picks(workload, candidate)]
        if picked_workloads:
            other_autoscaler, _ = first_by_target[picked_workloads[0].item.key]
            yield _overlap_finding(autoscaler, workload, other_autoscaler, picked_workloads)


def _index_by_label(scaled_workloads: Sequence[Workload]) -> dict[_LabelKey, list[Workload]]:
    """Workloads by namespace and each label of their pods; by namespace alone under the empty label."""
    workloads_by_label: dict[_LabelKey, list[Workload]] = defaultdict(list)
    for workload in scaled_workloads:
        for pair in (("", ""), *workload.labels.items()):
            workloads_by_label[(workload.item.namespace, *pair)].append(workload)
    return workloads_by_label


def _candidates(workload: Workload, by_label: dict[_LabelKey, list[Workload]]) -> Sequence[Workload]:
    """The workloads that a selector may pick: those with its least common label."""
    pairs = workload.selector.equalities or (("", ""),)  # without equalities: all of the namespace
    return min((by_label.get((workload.item.namespace, *pair), []) for pair in pairs), key=len)


def _picks(workload: Workload, other_workload: Workload) -> bool:
    """Whether the selector of a workload matches the pods of another one."""
    return other_workload.item.key != workload.item.key and workload.selector.matches(other_workload.labels)


def _overlap_finding(
    autoscaler: LintedAutoscaler,
    workload: Workload,
    other_autoscaler: LintedAutoscaler,
    picked_workloads: Sequence[Workload],
) -> RuleFinding:
    """The finding for `workload`, whose selector picks the pods of `picked_workloads`, too."""
    picked_text = _listed([picked_workload.item for picked_workload in picked_workloads])
    item, other_item = autoscaler.item, other_autoscaler.item
    return RuleFinding(
        workload.item,
        "spec.selector",
        f"the selector picks the pods of {picked_text} too, so that the autoscalers "
        f"{item.namespace}/{item.name} and {other_item.namespace}/{other_item.name} both stop "
        "with AmbiguousSelector",
        "give each workload a label of its own in selector and template",
        other_item=autoscaler.item,
    )


@rule("PSL008", "two-autoscalers", Severity.ERROR, "A target has several autoscalers.")
def two_autoscalers(context: LintContext) -> Iterator[RuleFinding]:
    """PSL008: two autoscalers, or one and a ScaledObject of KEDA that does not own it, with the same target."""
    autoscalers_by_target: dict[Key, list[Item]] = defaultdict(list)
    for autoscaler in context.autoscalers:
        autoscalers_by_target[autoscaler.target_key].append(autoscaler.item)
    scaled_objects = _scaled_objects(context)
    for autoscaler in context.autoscalers:
        item = autoscaler.item
        same_target = autoscalers_by_target[autoscaler.target_key]
        conflicting = [other_item for other_item in same_target if other_item is not item]
        conflicting += [
            other_item
            for other_item in scaled_objects.get(autoscaler.target_key, ())
            if not _is_owned(item, other_item)
        ]
        if conflicting:
            yield _conflict_finding(autoscaler, conflicting)


def _conflict_finding(autoscaler: LintedAutoscaler, conflicting: Sequence[Item]) -> RuleFinding:
    """The finding for an autoscaler whose target the objects `conflicting` scale too."""
    reference = autoscaler.reference
    return RuleFinding(
        autoscaler.item,
        "spec.scaleTargetRef",
        f"{reference.get('kind', '')} {autoscaler.item.namespace}/{reference.get('name', '')} is scaled by "
        f"{_listed(conflicting)} too: each undoes what the other does",
        "keep one autoscaler for a target, with all its metrics: the highest proposal counts",
        other_item=conflicting[0],
    )


def _scaled_objects(context: LintContext) -> dict[Key, list[Item]]:
    """The ScaledObjects of KEDA by the key of their target."""
    scaled_objects: dict[Key, list[Item]] = defaultdict(list)
    for item in context.of_kind("keda.sh", "ScaledObject"):
        reference = mapping(item.spec.get("scaleTargetRef"))
        group = group_of(text(reference.get("apiVersion")) or "apps/v1")
        kind = text(reference.get("kind")) or "Deployment"
        scaled_objects[Key(group, kind.lower(), item.namespace, text(reference.get("name")))].append(item)
    return scaled_objects


def _is_owned(item: Item, owner: Item) -> bool:
    """Whether an ownerReference of the item names the owner."""
    owner_references = mappings(mapping(item.written.get("metadata")).get("ownerReferences"))
    owner_names = [(reference.get("kind"), reference.get("name")) for reference in owner_references]
    return (owner.kind, owner.name) in owner_names


@rule(
    "PSL012",
    "vertical-autoscaler",
    Severity.WARNING,
    "A VerticalPodAutoscaler changes the requests that the autoscaler scales by.",
)
def vertical_autoscaler(context: LintContext) -> Iterator[RuleFinding]:
    """PSL012: a VerticalPodAutoscaler that changes the requests by which an autoscaler scales."""
    targets: dict[Key, list[Item]] = defaultdict(list)
    for item in context.of_kind("autoscaling.k8s.io", "VerticalPodAutoscaler"):
        reference = mapping(item.spec.get("targetRef"))
        group, kind = group_of(text(reference.get("apiVersion"))), text(reference.get("kind")).lower()
        targets[Key(group, kind, item.namespace, text(reference.get("name")))].append(item)
    for autoscaler in context.autoscalers:
        for vertical in targets.get(autoscaler.target_key, ()):
            metric_resources = {metric.resource for metric in autoscaler.metrics}
            shared = sorted(_controlled_resources(vertical) & metric_resources)
            if shared:
                yield _shared_resources_finding(autoscaler, vertical, shared)


def _controlled_resources(vertical: Item) -> set[str]:
    """The resources whose requests a VerticalPodAutoscaler changes, of any container; empty if its mode is `Off`."""
    if mapping(vertical.spec.get("updatePolicy")).get("updateMode") == "Off":
        return set()
    policies = list(mappings(mapping(vertical.spec.get("resourcePolicy")).get("containerPolicies")))
    resources: set[str] = set()
    for policy in policies:
        if policy.get("mode") != "Off":
            stated = policy.get("controlledResources")
            resources |= {text(name) for name in stated} if isinstance(stated, list) else set(_DEFAULT_RESOURCES)
    has_default_policy = any(policy.get("containerName") == "*" for policy in policies)
    return resources if has_default_policy else resources | set(_DEFAULT_RESOURCES)


def _shared_resources_finding(autoscaler: LintedAutoscaler, vertical: Item, shared: Sequence[str]) -> RuleFinding:
    """The finding for an autoscaler and a VerticalPodAutoscaler that share resources."""
    resources = " and ".join(shared)
    return RuleFinding(
        autoscaler.item,
        "spec.metrics",
        f"the autoscaler scales by {resources}, and {vertical.full_name} changes the requests of {resources} of the "
        "same pods: each answers the other's changes",
        "scale by another metric, or set the VerticalPodAutoscaler's controlledResources or updateMode: Off",
        other_item=vertical,
    )


def _listed(items: Sequence[Item]) -> str:
    """The kinds and names of the items, SHOWN_MAX at most and the number of further ones."""
    shown = ", ".join(item.full_name for item in items[:SHOWN_MAX])
    return shown if len(items) <= SHOWN_MAX else f"{shown} and {len(items) - SHOWN_MAX} more"
