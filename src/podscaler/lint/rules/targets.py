"""Lint rules about scale targets: those that cannot be scaled (PSL002), or do not exist (PSL003).

`podscaler.lint.rulebook` lists the rules, and says where a new one goes. Kinds are pairs of a group and a kind in lower
case.

Source: docs/spec/decision.md 2 (Reconcile in order): the target is found by group and kind, whatever version the
reference names.
"""

from collections.abc import Iterator
from functools import cache

from podscaler.api.kinds import catalog
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import mapping, mappings, text

_REFERENCE = "spec.scaleTargetRef"
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
_SCALABLE_KINDS = "a Deployment, StatefulSet, ReplicaSet, ReplicationController, or a custom resource with a scale"
_NEVER_SCALED = frozenset({("batch", "job"), ("batch", "cronjob"), ("", "pod"), ("apps", "daemonset")})
"""Kinds without a scale subresource that users name as targets nevertheless."""
_MOVED_TO_APPS = frozenset({"deployment", "replicaset", "daemonset"})
"""Kinds that the group extensions had until Kubernetes 1.16."""


@rule("PSL002", "target-without-scale", Severity.ERROR, "The target is of a kind that cannot be scaled.")
def target_without_scale(context: LintContext) -> Iterator[RuleFinding]:
    """PSL002: a target whose kind has no scale subresource."""
    defined = _defined_kinds(context)
    for autoscaler in context.autoscalers:
        reason = _unscalable_reason(autoscaler, context, defined)
        if reason:
            yield about(
                autoscaler,
                f"{_REFERENCE}.kind",
                f"the target {_target_text(autoscaler)} {reason}: the autoscaler never scales anything",
                f"name {_SCALABLE_KINDS}",
            )


def _unscalable_reason(autoscaler: LintedAutoscaler, context: LintContext, defined: dict[tuple[str, str], bool]) -> str:
    """Why the target cannot be scaled; empty if it can be, or where that is not known."""
    group, kind_name = autoscaler.target_key.group, autoscaler.target_key.kind
    kind = (group, kind_name)
    if group == "extensions" and kind_name in _MOVED_TO_APPS:
        return "is named in the group extensions, which no longer has it (write apps/v1)"
    is_scalable = _is_scalable(kind, context, defined)
    if is_scalable is False:
        return "has no scale subresource"
    if is_scalable is None and context.cluster and kind in context.cluster.unserved:
        return "is of a kind that the cluster does not serve"
    if is_scalable is None and group == "apps":
        return "is of a kind that the group apps does not have"
    return ""


def _is_scalable(kind: tuple[str, str], context: LintContext, defined: dict[tuple[str, str], bool]) -> bool | None:
    """Whether a kind has a scale; None if that is not known."""
    if kind in _NEVER_SCALED:
        return False
    served = context.cluster.scalable if context.cluster else {}
    for scale_by_kind in (_built_in_kinds(), defined, served):
        if kind in scale_by_kind:
            return scale_by_kind[kind]
    return None


@cache
def _built_in_kinds() -> dict[tuple[str, str], bool]:
    """Whether each kind that Kubernetes serves has a scale."""
    return {(resource.group, resource.kind.lower()): resource.scale is not None for resource in catalog.RESOURCES}


def _defined_kinds(context: LintContext) -> dict[tuple[str, str], bool]:
    """Whether the kinds of CustomResourceDefinitions among the objects have a scale in any version."""
    scale_by_kind = {}
    for item in context.of_kind(*_CRD):
        spec = mapping(item.obj.get("spec"))
        kind = (text(spec.get("group")), text(mapping(spec.get("names")).get("kind")).lower())
        versions = mappings(spec.get("versions"))
        scale_by_kind[kind] = any("scale" in mapping(version.get("subresources")) for version in versions)
    return scale_by_kind


@rule("PSL003", "target-not-found", Severity.ERROR, "The target is not there.")
def target_not_found(context: LintContext) -> Iterator[RuleFinding]:
    """PSL003: a target that is neither among the files nor in the cluster."""
    for autoscaler in context.autoscalers:
        if autoscaler.target is None and _is_expected(autoscaler, context):
            searched_place = "in the cluster" if context.cluster else "among the files"
            yield RuleFinding(
                autoscaler.item,
                f"{_REFERENCE}.name",
                f"the target {_target_text(autoscaler)} is not {searched_place}{_same_name_hint(autoscaler, context)}",
                "name an object of the autoscaler's own namespace that is there",
            )


def _is_expected(autoscaler: LintedAutoscaler, context: LintContext) -> bool:
    """Whether a missing target is an error.

    It is if its kind was listed from the cluster, if its namespace has objects of that kind, or if the kind is a
    built-in one with a scale and its namespace has objects of any such kind.
    """
    key = autoscaler.target_key
    if context.cluster and (key.group, key.kind) in context.cluster.listed:
        return True
    if context.of_kind(key.group, key.kind, key.namespace):
        return True
    built_in = _built_in_kinds()
    if not built_in.get((key.group, key.kind), False):
        return False
    return any(context.of_kind(*kind, key.namespace) for kind, has_scale in built_in.items() if has_scale)


def _same_name_hint(autoscaler: LintedAutoscaler, context: LintContext) -> str:
    """A hint at an object of the same name in another namespace or of another kind, empty without one."""
    key = autoscaler.target_key
    for item in context.of_kind(key.group, key.kind):
        if item.name == key.name:
            return f"; there is {item.full_name}, but an autoscaler only scales within its own namespace"
    for kind, has_scale in _built_in_kinds().items():
        for item in context.of_kind(*kind, key.namespace) if has_scale else ():
            if item.name == key.name:
                return f"; there is {item.full_name}"
    return ""


def _target_text(autoscaler: LintedAutoscaler) -> str:
    reference = autoscaler.reference
    return f"{reference.get('kind', '')} {autoscaler.target_key.namespace}/{reference.get('name', '')}"
