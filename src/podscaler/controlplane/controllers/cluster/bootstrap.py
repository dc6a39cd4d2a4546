"""Creates the default RBAC roles and bindings and the definition of MetricSource, before the API server serves.

`cli.up` awaits `ensure_policy` and `ensure_definition`. `bootstrap_roles` has the tables of roles and bindings. Rules,
subjects and labels that a stored role or binding lacks are added; those that users added are kept. A role or binding
with the annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

Source: upstream's post-start hook rbac/bootstrap-roles and its reconciliation.
"""

import asyncio
from collections.abc import Iterable, Iterator

from podscaler.api.kinds.apiextensions import customresourcedefinition
from podscaler.api.kinds.autoscaling import metric_source
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth import policy_rules
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from podscaler.controlplane.controllers.cluster import bootstrap_roles, role_aggregation
from podscaler.controlplane.controllers.cluster.bootstrap_roles import Rules
from podscaler.controlplane.registry.registry import Registry

_GROUP = "rbac.authorization.k8s.io"
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_CONTROLLER_NAMESPACE = "kube-system"
"""The namespace of the service accounts of controllers."""


async def ensure_policy(registry: Registry) -> None:
    """Create and update the roles and bindings; the system namespaces must exist. Raises StatusError."""
    roles = list(_cluster_roles())
    for _ in bootstrap_roles.AGGREGATED_ROLES:  # aggregated roles select one another: each round propagates one level
        for role in roles:
            if "aggregationRule" in role:
                role["rules"] = role_aggregation.aggregated_rules(role, roles)
    await _ensure_all(registry, CLUSTER_ROLES, roles)
    await _ensure_all(registry, ROLES, _default_roles())
    await _ensure_all(registry, CLUSTER_ROLE_BINDINGS, _cluster_role_bindings())
    await _ensure_all(registry, ROLE_BINDINGS, _role_bindings())


async def ensure_definition(registry: Registry) -> None:
    """Create the definition of MetricSource, or replace `spec.versions` of the stored one. Raises StatusError."""
    definition = metric_source.definition()
    stored = registry.find(customresourcedefinition.KEY, "", definition["metadata"]["name"])
    if stored is None:
        await registry.create(customresourcedefinition.KEY, definition)
    elif stored["spec"]["versions"] != definition["spec"]["versions"]:
        spec = {**stored["spec"], "versions": definition["spec"]["versions"]}
        await registry.update(customresourcedefinition.KEY, {**stored, "spec": spec})


async def _ensure_all(registry: Registry, resource: str, defaults: Iterable[Object]) -> None:
    """Write the default objects of a kind concurrently, so that they share a few syncs of the disk."""
    await asyncio.gather(*(_ensure_object(registry, resource, default) for default in defaults))


async def _ensure_object(registry: Registry, resource: str, default: Object) -> None:
    """Create a default object, or add to the stored one what it lacks unless its annotation forbids that."""
    metadata = default["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    stored = registry.find(resource, namespace, name)
    if stored is None:
        await registry.create(resource, default)
        return
    if (stored["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "false":
        return
    if default.get("roleRef") != stored.get("roleRef"):  # a roleRef is immutable
        await registry.delete(resource, namespace, name)
        await registry.create(resource, default)
        return
    merged = _with_missing_parts(stored, default)
    if merged != stored:
        await registry.update(resource, merged)


def _with_missing_parts(stored: Object, default: Object) -> Object:
    """The stored role or binding with the labels, annotations, rules and subjects of the default one that it lacks."""
    metadata = dict(stored["metadata"])
    for field in ("labels", "annotations"):
        metadata[field] = {**(default["metadata"].get(field) or {}), **(metadata.get(field) or {})}
    merged = {**stored, "metadata": metadata}
    if "roleRef" in default:
        subjects = list(stored.get("subjects") or ())
        subjects += [subject for subject in default.get("subjects") or () if subject not in subjects]
        return {**merged, "subjects": subjects} if subjects else merged
    if "aggregationRule" in default:
        return {**merged, "aggregationRule": stored.get("aggregationRule") or default["aggregationRule"]}
    missing_rules = policy_rules.find_uncovered(policy_rules.rules_of(stored), policy_rules.rules_of(default))
    added_rules = [rule.to_object() for rule in policy_rules.merge_verbs(missing_rules)]
    return {**merged, "rules": [*(stored.get("rules") or ()), *added_rules]}


def _cluster_roles() -> Iterator[Object]:
    """The ClusterRoles, those of the tables and those that aggregate others."""
    for name, rules in bootstrap_roles.CLUSTER_ROLES.items():
        yield _new_role("ClusterRole", {"name": name}, rules)
    for name, rules in bootstrap_roles.CONTROLLER_RULES.items():
        yield _new_role("ClusterRole", {"name": f"system:controller:{name}"}, rules)
    for name, rules in bootstrap_roles.AGGREGATE_TO_RULES.items():
        metadata = {"name": f"system:aggregate-to-{name}", "labels": {_aggregation_label(name): "true"}}
        yield _new_role("ClusterRole", metadata, rules)
    for name, target_role in bootstrap_roles.AGGREGATED_ROLES.items():
        labels = {_aggregation_label(target_role): "true"} if target_role else {}
        role = _new_role("ClusterRole", {"name": name, "labels": labels}, ())
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {_aggregation_label(name): "true"}}]}
        yield role


def _aggregation_label(role_name: str) -> str:
    """The label of ClusterRoles whose rules the aggregated ClusterRole of this name gets."""
    return f"{_GROUP}/aggregate-to-{role_name}"


def _default_roles() -> Iterator[Object]:
    """The Roles of the table."""
    for (namespace, name), rules in bootstrap_roles.ROLES.items():
        yield _new_role("Role", {"name": name, "namespace": namespace}, rules)


def _new_role(kind: str, metadata: Object, rules: Rules) -> Object:
    """A Role or ClusterRole; `rules` are lines as in `_parse_rule`."""
    return _rbac_object(kind, metadata) | {"rules": [_parse_rule(rule_line).to_object() for rule_line in rules]}


def _parse_rule(rule_line: str) -> policy_rules.PolicyRule:
    """The rule of a line: VERBS@URLS, or VERBS|GROUPS|RESOURCES[|NAMES]; the items of each are joined by commas."""
    if "@" in rule_line:
        verbs, urls = (_split_items(column) for column in rule_line.split("@"))
        return policy_rules.PolicyRule(verbs, urls=urls)
    verbs, groups, resources, *names = (_split_items(column) for column in rule_line.split("|"))
    return policy_rules.PolicyRule(verbs, groups, resources, *names)


def _split_items(column: str) -> tuple[str, ...]:
    """The comma-separated items of one column of a rule; an empty column has one empty item (the core group)."""
    return tuple(column.strip().split(","))


def _cluster_role_bindings() -> Iterator[Object]:
    """The ClusterRoleBindings of the table, and those of the service accounts of controllers."""
    for name, subjects in bootstrap_roles.CLUSTER_ROLE_BINDINGS.items():
        yield _new_binding("ClusterRoleBinding", {"name": name}, ("ClusterRole", name), subjects)
    for controller in bootstrap_roles.CONTROLLER_RULES:
        name = f"system:controller:{controller}"
        account = (f"ServiceAccount {_CONTROLLER_NAMESPACE}/{controller}",)
        yield _new_binding("ClusterRoleBinding", {"name": name}, ("ClusterRole", name), account)


def _role_bindings() -> Iterator[Object]:
    """The RoleBindings of the table."""
    for (namespace, name), (role_name, subjects) in bootstrap_roles.ROLE_BINDINGS.items():
        yield _new_binding("RoleBinding", {"name": name, "namespace": namespace}, ("Role", role_name), subjects)


def _new_binding(kind: str, metadata: Object, role: tuple[str, str], subjects: Iterable[str]) -> Object:
    """A binding of a kind; `role` is kind and name of the role, `subjects` are lines as in `_parse_subject`."""
    role_kind, role_name = role
    binding = _rbac_object(kind, metadata) | {"roleRef": {"apiGroup": _GROUP, "kind": role_kind, "name": role_name}}
    subject_objects = [_parse_subject(subject_line) for subject_line in subjects]
    return binding | {"subjects": subject_objects} if subject_objects else binding


def _parse_subject(subject_line: str) -> Object:
    """The subject of a line: `Group NAME`, `User NAME` or `ServiceAccount NAMESPACE/NAME`."""
    kind, name = subject_line.split(" ")
    if kind == "ServiceAccount":
        namespace, _, account = name.partition("/")
        return {"kind": kind, "name": account, "namespace": namespace}
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _rbac_object(kind: str, metadata: Object) -> Object:
    """An object of RBAC with the labels of default objects."""
    annotations = {_AUTOUPDATE: "true"}
    labels = {**_LABELS, **metadata.get("labels", {})}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
    }
