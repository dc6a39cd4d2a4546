"""The records of Role and ClusterRole (rbac.authorization.k8s.io/v1): lists of rules that allow requests.

ROLE and CLUSTER_ROLE, at the end, register the functions above them as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists them for the API server, and `podscaler.controlplane.auth.policy_index` reads the stored
rules. A new check of rules goes into `_rule_errors`.

Source: the API reference of rbac.authorization.k8s.io/v1; kube-apiserver's validation messages.
"""

from functools import partial

from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import checks, label_selector, tables
from podscaler.api.resource.resources import Object, Resource, Strategy, Version

GROUP = "rbac.authorization.k8s.io"


def validate_role(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a Role to be stored."""
    return checks.each(new.get("rules"), "rules", partial(_rule_errors, namespaced=True))


def validate_cluster_role(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a ClusterRole to be stored."""
    errors = checks.each(new.get("rules"), "rules", partial(_rule_errors, namespaced=False))
    if (aggregation := new.get("aggregationRule")) is None:
        return errors
    path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors")
    message = "at least one clusterRoleSelector required if aggregationRule is non-nil"
    return errors + checks.present(selectors, path, message) + checks.each(selectors, path, _selector_errors)


def _selector_errors(selector: Object, path: str) -> list[FieldError]:
    """Field errors of one of the selectors of ClusterRoles that are aggregated."""
    errors = label_selector.validate(selector, path)
    return [*errors, invalid(path, None, "invalid label selector.")] if errors else []


def _rule_errors(rule: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    """Errors of a rule, which is about resources or about URLs; only ClusterRoles have the latter."""
    errors = checks.present(rule.get("verbs"), f"{path}.verbs")
    if urls := rule.get("nonResourceURLs"):
        urls_path = f"{path}.nonResourceURLs"
        errors += checks.holds(not namespaced, urls_path, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            errors.append(
                invalid(urls_path, urls, "rules cannot apply to both regular resources and non-resource URLs")
            )
        return errors
    for name, shown_name in (("apiGroups", "api group"), ("resources", "resource")):
        errors += checks.present(
            rule.get(name), f"{path}.{name}", f"resource rules must supply at least one {shown_name}"
        )
    return errors


_PRINTER = tables.with_creation_time("role", note="")

ROLE = Resource(
    group=GROUP,
    plural="roles",
    kind="Role",
    versions=(Version("v1", "rbac/v1.Role"),),
    strategy=Strategy(allows_create_on_update=True, validate=validate_role),
    printer=_PRINTER,
)

CLUSTER_ROLE = Resource(
    group=GROUP,
    plural="clusterroles",
    kind="ClusterRole",
    versions=(Version("v1", "rbac/v1.ClusterRole"),),
    namespaced=False,
    strategy=Strategy(allows_create_on_update=True, validate=validate_cluster_role),
    printer=_PRINTER,
)
