"""Decides which webhooks a write calls, and in which version they get the object: rules, selectors, match conditions.

`webhook_admission` and `admission_policies` call it. With matchPolicy `Equivalent` a rule for another version of the
same objects matches, too; the webhook then gets the objects converted to that version. A new subresource for
connections: a line in `OPTIONS_KINDS`, and in `registry.remote_admission.CONNECTED_SUBRESOURCES`.

Source: kube-apiserver's generic webhook plugin and its predicates. Differs: the variable `authorizer` is not set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource, Version
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.remote_admission import CONNECTED_SUBRESOURCES, AdmittedWrite
from podscaler.controlplane.storage.entries import deep_copy

NAMESPACES = "namespaces"
OPTIONS_KINDS = {
    ("attach", "pods"): "PodAttachOptions",
    ("exec", "pods"): "PodExecOptions",
    ("portforward", "pods"): "PodPortForwardOptions",
    ("proxy", "nodes"): "NodeProxyOptions",
    ("proxy", "pods"): "PodProxyOptions",
    ("proxy", "services"): "ServiceProxyOptions",
}
"""The core/v1 kind of the options of a connection, by subresource and kind."""
_UNCONVERTED = frozenset({"scale", *CONNECTED_SUBRESOURCES})
"""Subresources whose objects (Scales, options) have one version."""


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A version in which the objects of a write are served.

    Attributes:
        resource: the record of the kind in that version.
        version: the version.
    """

    resource: Resource
    version: Version

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        group = self.resource.group
        return f"{group}/{self.version.version}" if group else self.version.version

    def converted(self, obj: Object | None, subresource: str) -> Object | None:
        """A stored object in this version; Scales and options are not converted. Raises ConversionNeeded."""
        if obj is None or subresource in _UNCONVERTED:
            return obj
        source = deep_copy(obj) if self.resource.is_custom else obj  # custom resources are converted in place
        at_version = self.version.from_storage(source)
        other_members = {name: member for name, member in at_version.items() if name not in ("kind", "apiVersion")}
        return {"kind": self.resource.kind, "apiVersion": self.api_version, **other_members}

    def kind_json(self, subresource: str) -> Object:
        """The GroupVersionKind of the objects."""
        if subresource == "scale":
            return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        if subresource in CONNECTED_SUBRESOURCES:
            return {"group": "", "version": "v1", "kind": OPTIONS_KINDS[subresource, self.resource.plural]}
        return {"group": self.resource.group, "version": self.version.version, "kind": self.resource.kind}

    def resource_json(self) -> Object:
        """The GroupVersionResource."""
        return {"group": self.resource.group, "version": self.version.version, "resource": self.resource.plural}


def versions_of(objects: Objects, write: AdmittedWrite, api_version: str) -> Sequence[ServedVersion]:
    """All versions of the objects of a write, that of the request first.

    Args:
        objects: the stored objects, with the served kinds.
        write: the write.
        api_version: that of the request; empty for a write of a controller, where the storage version is first.
    """
    kind = write.resource
    resources = [resource for resource in objects.resources if resource.storage_key == kind.storage_key]
    versions = [ServedVersion(resource, version) for resource in resources for version in resource.versions]
    of_request = [
        served for served in versions if served.api_version == api_version and served.resource.kind == kind.kind
    ]
    of_storage = [
        served for served in versions if served.resource is kind and served.version.version == kind.storage_version
    ]
    first, *_ = of_request or of_storage or versions
    return [first, *(served for served in versions if served is not first)]


def find_version(webhook: Webhook, write: AdmittedWrite, versions: Sequence[ServedVersion]) -> ServedVersion | None:
    """The version in which a webhook gets the objects, of `versions`, whose first is that of the request.

    None if none of its rules matches.
    """
    candidates = versions if webhook.source.get("matchPolicy") != "Exact" else versions[:1]
    rules = webhook.source.get("rules") or []
    for candidate in candidates:
        if any(_matches_rule(rule, write, candidate) for rule in rules):
            return candidate
    return None


def _matches_rule(rule: Object, write: AdmittedWrite, served: ServedVersion) -> bool:
    """Whether a rule is about the write as one version of the resource shows it."""
    return (
        _matches_scope(rule.get("scope", "*"), write)
        and _includes(rule.get("operations"), write.operation)
        and _includes(rule.get("apiGroups"), served.resource.group)
        and _includes(rule.get("apiVersions"), served.version.version)
        and any(_covers(pattern, served.resource.plural, write.subresource) for pattern in rule.get("resources") or [])
    )


def _matches_scope(scope: str, write: AdmittedWrite) -> bool:
    """Whether the `scope` of a rule (`Cluster`, `Namespaced` or `*`) is that of a write."""
    return scope == "*" or (scope == "Namespaced") == bool(write.namespace)


def _includes(names: Sequence[str] | None, name: str) -> bool:
    """Whether the names in a rule include a name, or all by `*`."""
    return "*" in (names or ()) or name in (names or ())


def _covers(pattern: str, resource: str, subresource: str) -> bool:
    """Whether a pattern like `pods`, `pods/status`, `pods/*` or `*/scale` covers a resource or its subresource."""
    name, _, subresource_pattern = pattern.partition("/")
    return name in ("*", resource) and subresource_pattern in ("*", subresource)


def is_selected(webhook: Webhook, write: AdmittedWrite, objects: Objects) -> bool:
    """Whether the selectors of namespaces and objects select a write."""
    if _has_namespace(write) and not webhook.namespaces.matches(_namespace_labels(write, objects)):
        return False
    return any(
        webhook.labels.matches((obj.get("metadata") or {}).get("labels") or {})
        for obj in (write.new, write.old)
        if obj is not None
    )


def _has_namespace(write: AdmittedWrite) -> bool:
    """Whether namespace selectors apply to a write: to namespaced objects, and to namespaces themselves."""
    return bool(write.namespace) or write.resource.key == NAMESPACES


def _namespace_labels(write: AdmittedWrite, objects: Objects) -> dict[str, str]:
    """The labels of the namespace of a write; empty if it has none."""
    namespace = find_namespace(write, objects) or {}
    return (namespace.get("metadata") or {}).get("labels") or {}


def find_namespace(write: AdmittedWrite, objects: Objects) -> Object | None:
    """The namespace of a write; of a namespace itself its new version; None for other cluster-scoped objects."""
    if write.resource.key == NAMESPACES:
        return write.new or write.old
    if not write.namespace or not objects.knows(NAMESPACES):
        return None
    entry = objects.find(NAMESPACES, "", write.namespace)
    return entry.decode() if entry is not None else None


def meets_conditions(webhook: Webhook, write: AdmittedWrite, variables: dict[str, Any]) -> bool:
    """Whether all match conditions are true for a write.

    A false condition outweighs one that cannot be evaluated; that counts as false with failurePolicy Ignore.

    Args:
        webhook: with `matchConditions`.
        write: names the object in errors.
        variables: `object`, `oldObject`, `request` and `namespaceObject` for the expressions.

    Raises StatusError 403 for a condition that cannot be evaluated.
    """
    conditions = webhook.source.get("matchConditions") or []
    if not conditions:
        return True
    from podscaler.api.cel.values.budget import Budget  # the language takes a while to import
    from podscaler.api.cel.values.errors import BudgetError, EvaluationError
    from podscaler.api.cel.values.issues import CompileError
    from podscaler.api.kinds.policy import admission_expressions

    errors = []
    budget = Budget()
    for condition in conditions:
        try:
            program = admission_expressions.compile_match_condition(condition["expression"].strip())
            if program.run(variables, budget) is not True:
                return False
        except (EvaluationError, CompileError, BudgetError) as error:
            errors.append(f"expression '{condition['expression']}' resulted in error: {error}")
    if errors and not webhook.ignores_failures:
        message = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise api_errors.forbidden(write.resource, write.name, message)
    return not errors
