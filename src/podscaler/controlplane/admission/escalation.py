"""Nobody gives more than they have: the check before a role or binding is written.

`guard` puts it in front of the four kinds' writes. Whoever may do everything, whoever has the verb `escalate` on the
role (`bind` on the role that a binding gives) pass, and so does the control plane itself, which is of system:masters.

Source: upstream's policy-based storage of RBAC objects and its messages.
"""

from functools import partial

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth import policy_rules
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from podscaler.controlplane.auth.policy_rules import EVERYTHING, PolicyRule
from podscaler.controlplane.auth.rules import Attributes, Authorizer
from podscaler.controlplane.registry import acting, users
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import User

_GROUP = "rbac.authorization.k8s.io"
_COLLECTED = ("ownerReferences", "finalizers")
_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


def guard(objects: Objects, authorizer: Authorizer) -> None:
    """Check every write of roles and bindings from now on, as far as those kinds are served."""
    for kind in (ROLES, CLUSTER_ROLES):
        objects.admit(kind, partial(_check_role, objects, authorizer, kind))
    for kind in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        objects.admit(kind, partial(_check_binding, objects, authorizer, kind))


def _check_role(objects: Objects, authorizer: Authorizer, kind: str, new: Object, old: Object | None) -> None:
    user = _limited()
    if user is None or (old is not None and _is_for_collector_only(new, old)):
        return
    metadata = new["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    plural = kind.partition(".")[0]
    wanted = Attributes("escalate", group=_GROUP, resource=plural, namespace=namespace, name=name)
    if authorizer.decide(user, wanted).allowed:
        return
    why = _excess(authorizer, user, namespace, policy_rules.rules_of(new))
    if not why and (new.get("aggregationRule") or (old or {}).get("aggregationRule")):
        why = _AGGREGATION if _excess(authorizer, user, "", EVERYTHING) else ""
    if why:
        raise api_errors.forbidden(objects.resource(kind), name, why)


def _check_binding(objects: Objects, authorizer: Authorizer, kind: str, new: Object, old: Object | None) -> None:
    user = _limited()
    if user is None or (old is not None and _is_for_collector_only(new, old)):
        return
    namespace, reference = new["metadata"].get("namespace", ""), new.get("roleRef") or {}
    is_role = reference.get("kind") == "Role"
    role = (namespace if is_role else "", reference.get("name", ""))
    plural = "roles" if is_role else "clusterroles"
    wanted = Attributes("bind", group=_GROUP, resource=plural, namespace=namespace, name=role[1])
    if authorizer.decide(user, wanted).allowed:
        return
    rules = authorizer.policy.rules_of_role(role)
    if rules is None:
        raise api_errors.not_found(objects.resource(kind), role[1])  # upstream says so of the role
    why = _excess(authorizer, user, namespace, rules)
    if why:
        raise api_errors.forbidden(objects.resource(kind), new["metadata"].get("name", ""), why)


def _limited() -> User | None:
    """For whom to check, None where that may do everything. Raises StatusError 403 where it is not known."""
    user = acting.current()
    return None if users.MASTERS in user.groups else user


def _excess(authorizer: Authorizer, user: User, namespace: str, wanted: tuple[PolicyRule, ...]) -> str:
    """What `user` would give without having it, in upstream's words; empty where that is nothing."""
    held, errors = authorizer.policy.rules(user, namespace)
    lacking = policy_rules.missing(held, wanted)
    if not lacking:
        return ""
    lines = sorted({policy_rules.shown(rule) for rule in policy_rules.compacted(lacking)})
    groups = policy_rules.quoted(user.all_groups)
    text = f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n'
    told = f"; resolution errors: [{' '.join(errors)}]" if errors else ""
    return text + "\n".join(lines) + told


def _is_for_collector_only(new: Object, old: Object) -> bool:
    """Whether nothing changes but what the garbage collector may have to change to delete the object."""
    return _without_collected(new) == _without_collected(old)


def _without_collected(obj: Object) -> Object:
    ignored = (*_COLLECTED, "managedFields", "resourceVersion")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ignored}
    return {**obj, "metadata": metadata}
