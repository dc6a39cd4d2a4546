"""Refuses writes of RBAC roles and bindings that grant more than the writing user has (privilege escalation).

`podscaler up` calls `admit_rbac`, which registers the check for writes of the four RBAC kinds; `registry.acting_user`
has the writing user. Exempt are members of system:masters, among them the control plane itself, users with the verb
`escalate` on the role, and users with `bind` on the role of a binding.

Source: kube-apiserver's policy-based storage of RBAC objects and its messages.
"""

from functools import partial

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth import policy_rules
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from podscaler.controlplane.auth.policy_rules import EVERYTHING, PolicyRule
from podscaler.controlplane.registry import acting_user, users
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import User

_RBAC_GROUP = "rbac.authorization.k8s.io"
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers")
_AGGREGATION_MESSAGE = "must have cluster-admin privileges to use the aggregationRule"


def admit_rbac(objects: Objects, authorizer: Authorizer) -> None:
    """Register the check of all writes of roles and bindings with `objects`."""
    for kind in (ROLES, CLUSTER_ROLES):
        objects.admit(kind, partial(_check_role, objects, authorizer, kind))
    for kind in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        objects.admit(kind, partial(_check_binding, objects, authorizer, kind))


def _check_role(objects: Objects, authorizer: Authorizer, kind: str, new: Object, old: Object | None) -> None:
    user = _user_to_check()
    if user is None or (old is not None and _is_bookkeeping(new, old)):
        return
    metadata = new["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    plural = kind.partition(".")[0]
    requested = Attributes("escalate", group=_RBAC_GROUP, resource=plural, namespace=namespace, name=name)
    if authorizer.decide(user, requested).allowed:
        return
    why = _describe_excess(authorizer, user, namespace, policy_rules.rules_of(new))
    if not why and (new.get("aggregationRule") or (old or {}).get("aggregationRule")):
        why = _AGGREGATION_MESSAGE if _describe_excess(authorizer, user, "", EVERYTHING) else ""
    if why:
        raise api_errors.forbidden(objects.resource(kind), name, why)


def _check_binding(objects: Objects, authorizer: Authorizer, kind: str, new: Object, old: Object | None) -> None:
    user = _user_to_check()
    if user is None or (old is not None and _is_bookkeeping(new, old)):
        return
    namespace, reference = new["metadata"].get("namespace", ""), new.get("roleRef") or {}
    is_role = reference.get("kind") == "Role"
    role = (namespace if is_role else "", reference.get("name", ""))
    plural = "roles" if is_role else "clusterroles"
    requested = Attributes("bind", group=_RBAC_GROUP, resource=plural, namespace=namespace, name=role[1])
    if authorizer.decide(user, requested).allowed:
        return
    rules = authorizer.policy.rules_of_role(role)
    if rules is None:
        raise api_errors.not_found(
            objects.resource(kind), role[1]
        )  # as kube-apiserver: the binding's kind, the role's name
    why = _describe_excess(authorizer, user, namespace, rules)
    if why:
        raise api_errors.forbidden(objects.resource(kind), new["metadata"].get("name", ""), why)


def _user_to_check() -> User | None:
    """The writing user, None if the user may do everything. Raises StatusError 403 if no user is set."""
    user = acting_user.current()
    return None if users.MASTERS in user.groups else user


def _describe_excess(authorizer: Authorizer, user: User, namespace: str, requested: tuple[PolicyRule, ...]) -> str:
    """kube-apiserver's message about the rules that `user` would grant but does not have; empty if there are none."""
    held, errors = authorizer.policy.rules(user, namespace)
    lacking = policy_rules.find_uncovered(held, requested)
    if not lacking:
        return ""
    lines = sorted({policy_rules.format_rule(rule) for rule in policy_rules.merge_verbs(lacking)})
    groups = policy_rules.quoted(user.all_groups)
    text = f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n'
    resolution_errors = f"; resolution errors: [{' '.join(errors)}]" if errors else ""
    return text + "\n".join(lines) + resolution_errors


def _is_bookkeeping(new: Object, old: Object) -> bool:
    """Whether an update changes only the fields that the garbage collector changes in order to delete the object."""
    return _without_bookkeeping(new) == _without_bookkeeping(old)


def _without_bookkeeping(obj: Object) -> Object:
    ignored = (*_COLLECTOR_FIELDS, "managedFields", "resourceVersion")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ignored}
    return {**obj, "metadata": metadata}
