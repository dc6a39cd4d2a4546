"""Roles and bindings for tests of access: in an index of their own, or created in a running server.

Called by the tests of access and of the server.
"""

from typing import Any

from podscaler.controlplane.auth.policy_index import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    PolicyIndex,
)
from podscaler.controlplane.controllers.cluster import bootstrap
from podscaler.controlplane.controllers.cluster.namespace_defaults import make_system_namespaces
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage import entries

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Object:
    """A rule on resources; every argument is a list with commas."""
    made = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return made | ({"resourceNames": names.split(",")} if names else {})


def path_rule(verbs: str, urls: str) -> Object:
    """A rule on paths."""
    return {"verbs": verbs.split(","), "nonResourceURLs": urls.split(",")}


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    """A Role, or without a namespace a ClusterRole."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(name: str, to: str, *subjects: str, namespace: str = "") -> Object:
    """A RoleBinding, or without a namespace a ClusterRoleBinding, to `Kind/name`; subjects are `Kind name`."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind, _, role_name = to.partition("/")
    reference = {"apiGroup": GROUP, "kind": kind, "name": role_name}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": reference,
        "subjects": [subject(text) for text in subjects],
    }


def subject(text: str) -> Object:
    """`User NAME`, `Group NAME` or `ServiceAccount NAMESPACE/NAME` (or, without the namespace, the binding's)."""
    kind, _, name = text.partition(" ")
    if kind != "ServiceAccount":
        return {"apiGroup": GROUP, "kind": kind, "name": name}
    namespace, _, account = name.rpartition("/")
    return {"kind": kind, "name": account} | ({"namespace": namespace} if namespace else {})


def key_of(obj: Object) -> str:
    """The `Resource.key` of a role or binding."""
    return {
        "Role": ROLES,
        "ClusterRole": CLUSTER_ROLES,
        "RoleBinding": ROLE_BINDINGS,
        "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
    }[obj["kind"]]


def entry(obj: Object) -> entries.Entry:
    """A role or binding as it is stored."""
    return entries.from_object(key_of(obj), {**obj, "metadata": dict(obj["metadata"])}, 1)


def index(*objs: Object) -> PolicyIndex:
    """An index of roles and bindings."""
    made = PolicyIndex()
    for obj in objs:
        made.put(entry(obj))
    return made


async def create_default_policy(objects: Objects) -> None:
    """The roles and bindings of every cluster, and the namespaces that they live in."""
    registry = Registry(objects)
    await make_system_namespaces(registry)
    await bootstrap.ensure_policy(registry)
