"""The records of Role and ClusterRole (rbac.authorization.k8s.io/v1): what may be done, as lists of rules.

Source: the API reference of rbac.authorization.k8s.io/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

GROUP = "rbac.authorization.k8s.io"


def role_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Role to be stored."""
    del old
    return _rule_faults(new, namespaced=True)


def cluster_role_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ClusterRole to be stored."""
    del old
    found = _rule_faults(new, namespaced=False)
    aggregation = new.get("aggregationRule")
    if aggregation is None:
        return found
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        found.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    for index, selector in enumerate(selectors):
        faults = label_selector.faults(selector, f"{path}[{index}]")
        found += faults
        if faults:
            found.append(invalid(f"{path}[{index}]", None, "invalid label selector."))
    return found


def _rule_faults(role: Object, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, rule in enumerate(role.get("rules") or []):
        found += _faults_of(rule, f"rules[{index}]", namespaced=namespaced)
    return found


def _faults_of(rule: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    found = [] if rule.get("verbs") else [required(f"{path}.verbs")]
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            found.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            found.append(invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return found
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _row(role: Object, now_ns: int) -> list[Any]:
    del now_ns
    metadata = role["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp", "")]


_PRINTER = Printer(
    columns=(
        Column("Name", format="name", description="Name of the role."),
        Column("Created At", "date", description="When the role was created."),
    ),
    row=_row,
    empty_is_null=True,
)

ROLE = Resource(
    group=GROUP,
    plural="roles",
    singular="role",
    kind="Role",
    versions=(Version("v1", "rbac/v1.Role"),),
    storage_version="v1",
    strategy=Strategy(allows_create_on_update=True, validate=role_faults),
    printer=_PRINTER,
)

CLUSTER_ROLE = Resource(
    group=GROUP,
    plural="clusterroles",
    singular="clusterrole",
    kind="ClusterRole",
    versions=(Version("v1", "rbac/v1.ClusterRole"),),
    storage_version="v1",
    namespaced=False,
    strategy=Strategy(allows_create_on_update=True, validate=cluster_role_faults),
    printer=_PRINTER,
)
