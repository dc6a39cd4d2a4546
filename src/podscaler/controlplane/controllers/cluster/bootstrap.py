"""Creates the default RBAC roles and bindings of a cluster, and adds what existing ones lack; defines MetricSource.

`cli.up` awaits `ensure_policy` and `ensure_definition` before the API server serves. A role or binding with the
annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone; rules and subjects of users are kept.

Source: upstream's post-start hook rbac/bootstrap-roles and its reconciliation.
"""

import asyncio
from collections.abc import Iterable, Iterator

from podscaler.api.kinds.apiextensions import customresourcedefinition
from podscaler.api.kinds.autoscaling import metric_source
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth import policy_rules
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from podscaler.controlplane.controllers.cluster import aggregation, bootstrap_roles
from podscaler.controlplane.controllers.cluster.bootstrap_roles import Rules
from podscaler.controlplane.registry.registry import Registry

_GROUP = "rbac.authorization.k8s.io"
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_SYSTEM_ACCOUNTS = "kube-system"


async def ensure_policy(registry: Registry) -> None:
    """Create and update the roles and bindings; the system namespaces must exist. Raises StatusError."""
    roles = list(_cluster_roles())
    for _ in bootstrap_roles.AGGREGATED_ROLES:  # aggregated roles select one another: each round propagates one level
        for role in roles:
            if "aggregationRule" in role:
                role["rules"] = aggregation.rules_of(role, roles)
    await _ensure_all(registry, CLUSTER_ROLES, roles)
    await _ensure_all(registry, ROLES, _roles())
    await _ensure_all(registry, CLUSTER_ROLE_BINDINGS, _cluster_role_bindings())
    await _ensure_all(registry, ROLE_BINDINGS, _role_bindings())


async def ensure_definition(registry: Registry) -> None:
    """Create the definition of MetricSource, or make its spec the one of this version. Raises StatusError."""
    wanted = metric_source.definition()
    stored = registry.find(customresourcedefinition.KEY, "", wanted["metadata"]["name"])
    if stored is None:
        await registry.create(customresourcedefinition.KEY, wanted)
    elif stored["spec"]["versions"] != wanted["spec"]["versions"]:
        spec = {**stored["spec"], "versions": wanted["spec"]["versions"]}
        await registry.update(customresourcedefinition.KEY, {**stored, "spec": spec})


async def _ensure_all(registry: Registry, resource: str, wanted: Iterable[Object]) -> None:
    """Write all concurrently, so that they share a few syncs of the disk."""
    await asyncio.gather(*(_ensure(registry, resource, obj) for obj in wanted))


async def _ensure(registry: Registry, resource: str, wanted: Object) -> None:
    """Create an object, or add to the stored one what it lacks unless its annotation forbids that."""
    metadata = wanted["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    stored = registry.find(resource, namespace, name)
    if stored is None:
        await registry.create(resource, wanted)
        return
    if (stored["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "false":
        return
    if wanted.get("roleRef") != stored.get("roleRef"):  # a roleRef is immutable
        await registry.delete(resource, namespace, name)
        await registry.create(resource, wanted)
        return
    merged = _merged(stored, wanted)
    if merged != stored:
        await registry.update(resource, merged)


def _merged(stored: Object, wanted: Object) -> Object:
    """The stored object with the labels, annotations, rules and subjects that it lacks."""
    metadata = dict(stored["metadata"])
    for member in ("labels", "annotations"):
        metadata[member] = {**(wanted["metadata"].get(member) or {}), **(metadata.get(member) or {})}
    merged = {**stored, "metadata": metadata}
    if "roleRef" in wanted:
        subjects = list(stored.get("subjects") or ())
        subjects += [subject for subject in wanted.get("subjects") or () if subject not in subjects]
        return {**merged, "subjects": subjects} if subjects else merged
    if "aggregationRule" in wanted:
        return {**merged, "aggregationRule": stored.get("aggregationRule") or wanted["aggregationRule"]}
    lacking = policy_rules.find_uncovered(policy_rules.rules_of(stored), policy_rules.rules_of(wanted))
    added = [rule.to_object() for rule in policy_rules.merge_verbs(lacking)]
    return {**merged, "rules": [*(stored.get("rules") or ()), *added]}


def _cluster_roles() -> Iterator[Object]:
    """The ClusterRoles, those of the tables and those that aggregate others."""
    for name, rules in bootstrap_roles.CLUSTER_ROLES.items():
        yield _role("ClusterRole", {"name": name}, rules)
    for name, rules in bootstrap_roles.CONTROLLER_RULES.items():
        yield _role("ClusterRole", {"name": f"system:controller:{name}"}, rules)
    for name, rules in bootstrap_roles.AGGREGATE_TO_RULES.items():
        metadata = {"name": f"system:aggregate-to-{name}", "labels": {_aggregates_to(name): "true"}}
        yield _role("ClusterRole", metadata, rules)
    for name, into in bootstrap_roles.AGGREGATED_ROLES.items():
        role = _role("ClusterRole", {"name": name, "labels": {_aggregates_to(into): "true"} if into else {}}, ())
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {_aggregates_to(name): "true"}}]}
        yield role


def _aggregates_to(name: str) -> str:
    return f"{_GROUP}/aggregate-to-{name}"


def _roles() -> Iterator[Object]:
    for (namespace, name), rules in bootstrap_roles.ROLES.items():
        yield _role("Role", {"name": name, "namespace": namespace}, rules)


def _role(kind: str, metadata: Object, rules: Rules) -> Object:
    return _object(kind, metadata) | {"rules": [_rule(text).to_object() for text in rules]}


def _rule(text: str) -> policy_rules.PolicyRule:
    """The rule of a text: VERBS@URLS, or VERBS|GROUPS|RESOURCES[|NAMES]; the items of each are joined by commas."""
    if "@" in text:
        verbs, urls = (_items(part) for part in text.split("@"))
        return policy_rules.PolicyRule(verbs, urls=urls)
    verbs, groups, resources, *names = (_items(part) for part in text.split("|"))
    return policy_rules.PolicyRule(verbs, groups, resources, *names)


def _items(text: str) -> tuple[str, ...]:
    return tuple(text.strip().split(","))


def _cluster_role_bindings() -> Iterator[Object]:
    for name, subjects in bootstrap_roles.CLUSTER_ROLE_BINDINGS.items():
        yield _binding("ClusterRoleBinding", {"name": name}, ("ClusterRole", name), subjects)
    for name in bootstrap_roles.CONTROLLER_RULES:
        full = f"system:controller:{name}"
        account = (f"ServiceAccount {_SYSTEM_ACCOUNTS}/{name}",)
        yield _binding("ClusterRoleBinding", {"name": full}, ("ClusterRole", full), account)


def _role_bindings() -> Iterator[Object]:
    for (namespace, name), (role, subjects) in bootstrap_roles.ROLE_BINDINGS.items():
        yield _binding("RoleBinding", {"name": name, "namespace": namespace}, ("Role", role), subjects)


def _binding(kind: str, metadata: Object, role: tuple[str, str], subjects: Iterable[str]) -> Object:
    reference = {"apiGroup": _GROUP, "kind": role[0], "name": role[1]}
    binding = _object(kind, metadata) | {"roleRef": reference}
    references = [_subject(text) for text in subjects]
    return binding | {"subjects": references} if references else binding


def _subject(text: str) -> Object:
    """The subject of a text: `Group NAME`, `User NAME` or `ServiceAccount NAMESPACE/NAME`."""
    kind, name = text.split(" ")
    if kind == "ServiceAccount":
        namespace, _, account = name.partition("/")
        return {"kind": kind, "name": account, "namespace": namespace}
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _object(kind: str, metadata: Object) -> Object:
    """An object of RBAC with the labels of default objects."""
    annotations = {_AUTOUPDATE: "true"}
    labels = {**_LABELS, **metadata.get("labels", {})}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
    }
