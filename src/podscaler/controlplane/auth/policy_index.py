"""Roles and bindings, indexed by whom they concern: the rules of a user without a look at anybody else's bindings.

`watch_policy` fills an index from the objects and keeps it up to date with every commit; `rules` asks it on every
request. A request costs as much as the user's own bindings have rules.

Source: upstream's RBAC rule resolver. ClusterRoleBindings count everywhere, RoleBindings in their namespace; a role
that does not exist gives nothing and is told.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """That a subject has a role.

    Attributes:
        role: which.
        reason: the binding, the role and the subject in upstream's words.
    """

    role: RoleKey
    reason: str


_Grants = dict[str, RoleGrant]
"""By the key of the binding."""


class PolicyIndex:
    """See the module. Empty when made."""

    def __init__(self) -> None:
        self._roles: dict[RoleKey, tuple[PolicyRule, ...]] = {}
        self._grants: dict[tuple[str, Subject], _Grants] = {}
        self._bound: dict[tuple[str, str], list[tuple[str, Subject]]] = {}

    def put(self, entry: Entry) -> None:
        """Take over the newest version of a role or binding."""
        if entry.resource in (ROLES, CLUSTER_ROLES):
            self._roles[entry.namespace, entry.name] = rules_of(entry.decode())
        else:
            self.remove(entry)
            self._bind(entry)

    def remove(self, entry: Entry) -> None:
        """Forget a role or binding."""
        if entry.resource in (ROLES, CLUSTER_ROLES):
            self._roles.pop((entry.namespace, entry.name), None)
            return
        for place in self._bound.pop((entry.resource, entry.key), ()):
            grants = self._grants[place]
            grants.pop(entry.key, None)
            if not grants:
                del self._grants[place]

    def rules_of_role(self, role: RoleKey) -> tuple[PolicyRule, ...] | None:
        """The rules of a role, None where there is no such role."""
        return self._roles.get(role)

    def grants(self, user: User, namespace: str) -> Iterator[RoleGrant]:
        """What `user` has: everywhere, then (unless it is empty) in `namespace`."""
        subjects = [("User", user.name), *(("Group", group) for group in user.all_groups)]
        for place in ("", namespace) if namespace else ("",):
            for subject in subjects:
                found = self._grants.get((place, subject))
                if found is not None:
                    yield from found.values()

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """All rules of `user` there, and what is wrong with the roles that were to be had."""
        rules: list[PolicyRule] = []
        errors: dict[str, None] = {}
        for grant in self.grants(user, namespace):
            found = self._roles.get(grant.role)
            if found is None:
                errors[missing_role(grant.role)] = None
            else:
                rules += found
        return rules, list(errors)

    def _bind(self, entry: Entry) -> None:
        binding = entry.decode()
        reference = binding.get("roleRef") or {}
        role = (entry.namespace if reference.get("kind") == "Role" else "", reference.get("name", ""))
        places: dict[tuple[str, Subject], None] = {}
        for subject in binding.get("subjects") or ():
            who = _subject_key(subject, entry.namespace)
            if who is None:
                continue
            place = (entry.namespace, who)
            grant = RoleGrant(role, _reason(binding, subject, entry.namespace))
            self._grants.setdefault(place, {}).setdefault(entry.key, grant)
            places[place] = None  # a binding may name a subject twice
        self._bound[entry.resource, entry.key] = list(places)


def missing_role(role: RoleKey) -> str:
    """Upstream's words for a role that does not exist."""
    kind = "role" if role[0] else "clusterrole"
    return f'{kind}.rbac.authorization.k8s.io "{role[1]}" not found'


def _subject_key(subject: Mapping[str, str], namespace: str) -> Subject | None:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in ("User", "Group"):
        return kind, name
    home = subject.get("namespace") or namespace
    return ("User", users.account_name(home, name)) if kind == "ServiceAccount" and home else None


def _reason(binding: Object, subject: Mapping[str, str], namespace: str) -> str:
    reference, name = binding.get("roleRef") or {}, binding["metadata"]["name"]
    shown, kind = (f"{name}/{namespace}", "RoleBinding") if namespace else (name, "ClusterRoleBinding")
    who = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    role = f'{reference.get("kind", "")} "{reference.get("name", "")}"'
    return f'{kind} "{shown}" of {role} to {subject.get("kind", "")} "{who}"'


def watch_policy(objects: Objects, kinds: Iterable[str]) -> PolicyIndex:
    """An index of the roles and bindings of `objects` that stays up to date; `kinds` are those that are stored."""
    index = PolicyIndex()
    for kind in KINDS.intersection(kinds):
        for entry in objects.list(kind).entries:
            index.put(entry)
    objects.listen(_follower(index))
    return index


def _follower(index: PolicyIndex) -> Callable[[list[StoreEvent]], None]:
    def follow(events: list[StoreEvent]) -> None:
        for event in events:
            if event.subject.resource not in KINDS:
                continue
            if event.entry is not None:
                index.put(event.entry)
            else:
                index.remove(event.subject)

    return follow
