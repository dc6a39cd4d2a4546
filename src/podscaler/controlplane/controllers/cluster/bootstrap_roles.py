"""The default RBAC roles and bindings of a cluster, as tables read from `bootstrap_roles.json`.

`bootstrap` parses the rules and makes objects of the tables. A new role or rule: a line in the JSON file. A rule is a
line of up to four parts

    verbs | API groups (empty: the core group) | resources | names of objects

or `verbs @ paths`; a part is a comma-separated list: `get,list | apps | deployments` or `get @ /healthz,/version`.
Namespaced roles and bindings are keyed by `namespace/name` in the file. Roles of components that do not exist here and
do not connect to this API server are left out.

Source: the default roles and role bindings of the RBAC documentation; what a v1.37 server makes at its first start.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

Rules = tuple[str, ...]
"""The rules of a role, one line each, in the format of the module's docstring."""
Subjects = tuple[str, ...]
"""`User NAME`, `Group NAME` or `ServiceAccount NAMESPACE/NAME`."""


class _Tables(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `bootstrap_roles.json`; the constants below describe the fields."""

    aggregated: dict[str, str]
    aggregated_parts: dict[str, Rules]
    cluster_roles: dict[str, Rules]
    controllers: dict[str, Rules]
    roles: dict[str, Rules]
    cluster_role_bindings: dict[str, Subjects]
    role_bindings: dict[str, tuple[str, Subjects]]


_TABLES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Tables)

AUTOSCALER_ROLE = "podscaler:horizontal-pod-autoscaler"
"""The ClusterRole with the permissions of podscaler's autoscaler beyond those of upstream's controller."""
AGGREGATED_ROLES: Mapping[str, str] = _TABLES.aggregated
"""Aggregated ClusterRoles, each with the role that it is aggregated to (empty: none)."""
AGGREGATE_TO_RULES: Mapping[str, Rules] = _TABLES.aggregated_parts
"""The rules of `system:aggregate-to-NAME`, which are aggregated to the role NAME (`view`, `edit`, `admin`)."""
CLUSTER_ROLES: Mapping[str, Rules] = _TABLES.cluster_roles
"""ClusterRoles by name, except those of controllers and the aggregated ones."""
CONTROLLER_RULES: Mapping[str, Rules] = _TABLES.controllers
"""The rules of `system:controller:NAME`, bound to the service account NAME of kube-system."""
CLUSTER_ROLE_BINDINGS: Mapping[str, Subjects] = _TABLES.cluster_role_bindings
"""The subjects of the ClusterRoleBinding of each name, which binds the ClusterRole of the same name."""


def _split_key(key: str) -> tuple[str, str]:
    """Namespace and name of a key `namespace/name`."""
    namespace, _, name = key.partition("/")
    return namespace, name


ROLES: Mapping[tuple[str, str], Rules] = {_split_key(key): rules for key, rules in _TABLES.roles.items()}
"""Roles by namespace and name."""
ROLE_BINDINGS: Mapping[tuple[str, str], tuple[str, Subjects]] = {
    _split_key(key): binding for key, binding in _TABLES.role_bindings.items()
}
"""RoleBindings by namespace and name: the name of the Role (never a ClusterRole), and the subjects."""
