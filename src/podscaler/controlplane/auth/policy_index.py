"""Indexes RBAC roles and bindings by subject: finds the rules of a user without reading other users' bindings.

`cli.up` and `apiserver.app` call `watch_policy`, which fills an index from the stored objects and updates it with every
commit; `authorizer` reads it for every request, in time proportional to the rules of the user's own bindings. Access
reviews and `admission.rbac_escalation` read all rules of a user. ClusterRoleBindings apply everywhere, RoleBindings in
their namespace; a binding to a missing role grants nothing and is reported as an error. Another kind of subject:
`_parse_subject` and `_grant_reason`.

Source: kube-apiserver's RBAC rule resolver.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth.policy_rules import PolicyRule, rules_of
from podscaler.controlplane.registry import users
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.entries import Entry

ROLES = "roles.rbac.authorization.k8s.io"
CLUSTER_ROLES = "clusterroles.rbac.authorization.k8s.io"
ROLE_BINDINGS = "rolebindings.rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS = "clusterrolebindings.rbac.authorization.k8s.io"
KINDS = frozenset({ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})

Subject = tuple[str, str]
"""`User` or `Group`, and its name; service accounts are users."""
RoleKey = tuple[str, str]
"""Namespace (empty for a ClusterRole) and name."""
_GrantScope = tuple[str, Subject]
"""A namespace (empty: cluster-wide), and a subject that has grants in it."""


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role that a binding grants to a subject.

    Attributes:
        role: the role, which may be missing.
        reason: names the binding, the role and the subject in kube-apiserver's words, for audit events.
    """

    role: RoleKey
    reason: str


GrantsByBinding = dict[str, RoleGrant]
"""By the key of the binding."""


class PolicyIndex:
    """The roles and bindings of a cluster; empty at first."""

    def __init__(self) -> None:
        self._roles: dict[RoleKey, tuple[PolicyRule, ...]] = {}
        self._grants: dict[_GrantScope, GrantsByBinding] = {}
        self._scopes_by_binding: dict[tuple[str, str], list[_GrantScope]] = {}
        """By kind and key of the binding."""

    def put(self, entry: Entry) -> None:
        """Add or replace a role or binding."""
        if entry.resource in (ROLES, CLUSTER_ROLES):
            self._roles[entry.namespace, entry.name] = rules_of(entry.decode())
        else:
            self.remove(entry)
            self._add_binding(entry)

    def remove(self, entry: Entry) -> None:
        """Remove a role or binding."""
        if entry.resource in (ROLES, CLUSTER_ROLES):
            self._roles.pop((entry.namespace, entry.name), None)
            return
        for scope in self._scopes_by_binding.pop((entry.resource, entry.key), ()):
            grants = self._grants[scope]
            grants.pop(entry.key, None)
            if not grants:
                del self._grants[scope]

    def apply(self, events: Iterable[StoreEvent]) -> None:
        """Apply the events of a commit; those of other kinds are ignored."""
        for event in events:
            if event.subject.resource in KINDS:
                if event.entry is not None:
                    self.put(event.entry)
                else:
                    self.remove(event.subject)

    def rules_of_role(self, role: RoleKey) -> tuple[PolicyRule, ...] | None:
        """The rules of a role, None if there is no such role."""
        return self._roles.get(role)

    def grants(self, user: User, namespace: str) -> Iterator[RoleGrant]:
        """The grants of `user` and its groups: cluster-wide, then (unless it is empty) in `namespace`."""
        subjects = [("User", user.name), *(("Group", group) for group in user.all_groups)]
        binding_namespaces = ("", namespace) if namespace else ("",)
        for binding_namespace in binding_namespaces:
            for subject in subjects:
                grants = self._grants.get((binding_namespace, subject))
                if grants is not None:
                    yield from grants.values()

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """All rules of `user` in a namespace (empty: cluster-wide), and an error for each missing role."""
        rules: list[PolicyRule] = []
        errors: dict[str, None] = {}  # each message once, in order
        for grant in self.grants(user, namespace):
            role_rules = self._roles.get(grant.role)
            if role_rules is None:
                errors[missing_role(grant.role)] = None
            else:
                rules += role_rules
        return rules, list(errors)

    def _add_binding(self, entry: Entry) -> None:
        """Index the grants of a binding by its namespace and subjects."""
        binding = entry.decode()
        reference = binding.get("roleRef") or {}
        role = (entry.namespace if reference.get("kind") == "Role" else "", reference.get("name", ""))
        scopes: dict[_GrantScope, None] = {}  # in order, each once: a binding may name a subject twice
        for subject in binding.get("subjects") or ():
            subject_key = _parse_subject(subject, entry.namespace)
            if subject_key is None:
                continue
            scope = (entry.namespace, subject_key)
            grant = RoleGrant(role, _grant_reason(binding, subject, entry.namespace))
            self._grants.setdefault(scope, {}).setdefault(entry.key, grant)
            scopes[scope] = None
        self._scopes_by_binding[entry.resource, entry.key] = list(scopes)


def missing_role(role: RoleKey) -> str:
    """kube-apiserver's message for a role that does not exist."""
    namespace, name = role
    kind = "role" if namespace else "clusterrole"
    return f'{kind}.rbac.authorization.k8s.io "{name}" not found'


def _parse_subject(subject: Mapping[str, str], namespace: str) -> Subject | None:
    """The index key of a binding's subject, None for an unknown kind or a service account without namespace."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in ("User", "Group"):
        return kind, name
    owner = subject.get("namespace") or namespace
    return ("User", users.account_name(owner, name)) if kind == "ServiceAccount" and owner else None


def _grant_reason(binding: Object, subject: Mapping[str, str], namespace: str) -> str:
    """The reason of a grant: `RoleBinding "read/default" of Role "reader" to User "jane"`."""
    reference, name = binding.get("roleRef") or {}, binding["metadata"]["name"]
    full_name, kind = (f"{name}/{namespace}", "RoleBinding") if namespace else (name, "ClusterRoleBinding")
    subject_name = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        subject_name = f"{subject_name}/{subject.get('namespace') or namespace}"
    role = f'{reference.get("kind", "")} "{reference.get("name", "")}"'
    return f'{kind} "{full_name}" of {role} to {subject.get("kind", "")} "{subject_name}"'


def watch_policy(objects: Objects, kinds: Iterable[str]) -> PolicyIndex:
    """An index of the roles and bindings of `objects` that is updated by every commit; `kinds` are the stored kinds."""
    index = PolicyIndex()
    for kind in KINDS.intersection(kinds):
        for entry in objects.list(kind).entries:
            index.put(entry)
    objects.listen(index.apply)
    return index
