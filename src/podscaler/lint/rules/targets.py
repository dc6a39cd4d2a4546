"""Targets that cannot be scaled (PSL002), or are not there (PSL003).

Source: docs/spec/decision.md 2 (Reconcile in order): the target is found by group and kind, whatever version the
reference names.
"""

from collections.abc import Iterator
from functools import cache

from podscaler.api.kinds import catalog
from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.items import mapping, mappings, text
from podscaler.lint.model.lint_context import LintedAutoscaler, Material

_REFERENCE = "spec.scaleTargetRef"
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
_SCALED = "a Deployment, StatefulSet, ReplicaSet, ReplicationController, or a custom resource with a scale"
_NEVER_SCALED = frozenset({("batch", "job"), ("batch", "cronjob"), ("", "pod"), ("apps", "daemonset")})
_MOVED = frozenset({"deployment", "replicaset", "daemonset"})


def _unscalable(material: Material) -> Iterator[RuleFinding]:
    defined = _defined(material)
    for autoscaler in material.autoscalers:
        reason = _reason(autoscaler, material, defined)
        if reason:
            yield RuleFinding(
                autoscaler.item,
                f"{_REFERENCE}.kind",
                f"the target {_shown(autoscaler)} {reason}: the autoscaler never scales anything",
                f"name {_SCALED}",
                other=autoscaler.target,
            )


def _reason(autoscaler: LintedAutoscaler, material: Material, defined: dict[tuple[str, str], bool]) -> str:
    """Why the target cannot be scaled, empty where it can be or that is not known."""
    kind = (autoscaler.target_key.group, autoscaler.target_key.kind)
    if kind[0] == "extensions" and kind[1] in _MOVED:
        return "is named in the group extensions, which no longer has it (write apps/v1)"
    is_scalable = _scalable(kind, material, defined)
    if is_scalable is False:
        return "has no scale subresource"
    if is_scalable is None and material.cluster and kind in material.cluster.unserved:
        return "is of a kind that the cluster does not serve"
    if is_scalable is None and kind[0] == "apps":
        return "is of a kind that the group apps does not have"
    return ""


def _scalable(kind: tuple[str, str], material: Material, defined: dict[tuple[str, str], bool]) -> bool | None:
    """Whether a kind has a scale; None where that is not known."""
    if kind in _NEVER_SCALED:
        return False
    served = material.cluster.scalable if material.cluster else {}
    for known in (_built_in(), defined, served):
        if kind in known:
            return known[kind]
    return None


@cache
def _built_in() -> dict[tuple[str, str], bool]:
    return {(each.group, each.kind.lower()): each.scale is not None for each in catalog.RESOURCES}


def _defined(material: Material) -> dict[tuple[str, str], bool]:
    """Whether the kinds of CustomResourceDefinitions among the objects have a scale in any version."""
    found = {}
    for item in material.of_kind(*_CRD):
        spec = mapping(item.obj.get("spec"))
        kind = (text(spec.get("group")), text(mapping(spec.get("names")).get("kind")).lower())
        versions = mappings(spec.get("versions"))
        found[kind] = any("scale" in mapping(version.get("subresources")) for version in versions)
    return found


def _missing(material: Material) -> Iterator[RuleFinding]:
    for autoscaler in material.autoscalers:
        if autoscaler.target is None and _should_be_there(autoscaler, material):
            place = "in the cluster" if material.cluster else "among the files"
            yield RuleFinding(
                autoscaler.item,
                f"{_REFERENCE}.name",
                f"the target {_shown(autoscaler)} is not {place}{_similar(autoscaler, material)}",
                "name an object of the autoscaler's own namespace that is there",
            )


def _should_be_there(autoscaler: LintedAutoscaler, material: Material) -> bool:
    """Whether enough is given to say that a target is missing: its namespace has workloads, or a cluster was asked."""
    key = autoscaler.target_key
    if material.cluster and (key.group, key.kind) in material.cluster.listed:
        return True
    if material.of_kind(key.group, key.kind, key.namespace):
        return True
    is_known = _built_in().get((key.group, key.kind), False)
    return is_known and any(material.of_kind(*kind, key.namespace) for kind, scales in _built_in().items() if scales)


def _similar(autoscaler: LintedAutoscaler, material: Material) -> str:
    """A hint at what may have been meant, empty without one."""
    key = autoscaler.target_key
    for item in material.of_kind(key.group, key.kind):
        if item.name == key.name:
            return f"; there is {item.shown}, but an autoscaler only scales within its own namespace"
    for kind, scales in _built_in().items():
        for item in material.of_kind(*kind, key.namespace) if scales else ():
            if item.name == key.name:
                return f"; there is {item.shown}"
    return ""


def _shown(autoscaler: LintedAutoscaler) -> str:
    reference = autoscaler.reference
    return f"{reference.get('kind', '')} {autoscaler.target_key.namespace}/{reference.get('name', '')}"


UNSCALABLE = Rule(
    "PSL002",
    "target-without-scale",
    Severity.ERROR,
    "The target is of a kind that cannot be scaled.",
    _unscalable,
)
MISSING = Rule("PSL003", "target-not-found", Severity.ERROR, "The target is not there.", _missing)
