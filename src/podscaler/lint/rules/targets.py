"""Lint rules about scale targets: those that cannot be scaled (PSL002), or do not exist (PSL003).

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
_MOVED_TO_APPS = frozenset({"deployment", "replicaset", "daemonset"})


@rule("PSL002", "target-without-scale", Severity.ERROR, "The target is of a kind that cannot be scaled.")
def target_without_scale(context: LintContext) -> Iterator[RuleFinding]:
    """PSL002: a target whose kind has no scale subresource."""
    defined = _defined(context)
    for autoscaler in context.autoscalers:
        reason = _reason(autoscaler, context, defined)
        if reason:
            yield about(
                autoscaler,
                f"{_REFERENCE}.kind",
                f"the target {_shown(autoscaler)} {reason}: the autoscaler never scales anything",
                f"name {_SCALABLE_KINDS}",
            )


def _reason(autoscaler: LintedAutoscaler, context: LintContext, defined: dict[tuple[str, str], bool]) -> str:
    """Why the target cannot be scaled; empty if it can be, or where that is not known."""
    group, kind_name = autoscaler.target_key.group, autoscaler.target_key.kind
    kind = (group, kind_name)
    if group == "extensions" and kind_name in _MOVED_TO_APPS:
        return "is named in the group extensions, which no longer has it (write apps/v1)"
    is_scalable = _scalable(kind, context, defined)
    if is_scalable is False:
        return "has no scale subresource"
    if is_scalable is None and context.cluster and kind in context.cluster.unserved:
        return "is of a kind that the cluster does not serve"
    if is_scalable is None and group == "apps":
        return "is of a kind that the group apps does not have"
    return ""


def _scalable(kind: tuple[str, str], context: LintContext, defined: dict[tuple[str, str], bool]) -> bool | None:
    """Whether a kind has a scale; None if that is not known."""
    if kind in _NEVER_SCALED:
        return False
    served = context.cluster.scalable if context.cluster else {}
    for scale_by_kind in (_built_in(), defined, served):
        if kind in scale_by_kind:
            return scale_by_kind[kind]
    return None


@cache
def _built_in() -> dict[tuple[str, str], bool]:
    return {(resource.group, resource.kind.lower()): resource.scale is not None for resource in catalog.RESOURCES}


def _defined(context: LintContext) -> dict[tuple[str, str], bool]:
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
        if autoscaler.target is None and _should_be_there(autoscaler, context):
            searched_place = "in the cluster" if context.cluster else "among the files"
            yield RuleFinding(
                autoscaler.item,
                f"{_REFERENCE}.name",
                f"the target {_shown(autoscaler)} is not {searched_place}{_similar(autoscaler, context)}",
                "name an object of the autoscaler's own namespace that is there",
            )


def _should_be_there(autoscaler: LintedAutoscaler, context: LintContext) -> bool:
    """Whether a missing target is an error: its kind is listed from the cluster, or its namespace has workloads."""
    key = autoscaler.target_key
    if context.cluster and (key.group, key.kind) in context.cluster.listed:
        return True
    if context.of_kind(key.group, key.kind, key.namespace):
        return True
    is_known = _built_in().get((key.group, key.kind), False)
    return is_known and any(context.of_kind(*kind, key.namespace) for kind, scales in _built_in().items() if scales)


def _similar(autoscaler: LintedAutoscaler, context: LintContext) -> str:
    """A hint at an object of the same name, empty without one."""
    key = autoscaler.target_key
    for item in context.of_kind(key.group, key.kind):
        if item.name == key.name:
            return f"; there is {item.shown}, but an autoscaler only scales within its own namespace"
    for kind, scales in _built_in().items():
        for item in context.of_kind(*kind, key.namespace) if scales else ():
            if item.name == key.name:
                return f"; there is {item.shown}"
    return ""


def _shown(autoscaler: LintedAutoscaler) -> str:
    reference = autoscaler.reference
    return f"{reference.get('kind', '')} {autoscaler.target_key.namespace}/{reference.get('name', '')}"
