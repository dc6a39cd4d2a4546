"""Refuses writes of RBAC roles and bindings that grant more than the writing user has (privilege escalation).

`apiserver.app` calls `register`, which registers the check for writes of the four RBAC kinds; `registry.acting_user`
has the writing user. Not checked are members of system:masters (among them the control plane itself), users with the
verb `escalate` on the role, and users with `bind` on the role of a binding. `auth.policy_rules` decides which rules
cover others.

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
"""The fields of metadata that the garbage collector changes in order to delete an object."""
_AGGREGATION_MESSAGE = "must have cluster-admin privileges to use the aggregationRule"


def register(objects: Objects, authorizer: Authorizer) -> None:
    """Register the check of all writes of roles and bindings with `objects`."""
    for resource in (ROLES, CLUSTER_ROLES):
        objects.add_admission(resource, partial(_check_role, objects, authorizer, resource))
    for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        objects.add_admission(resource, partial(_check_binding, objects, authorizer, resource))


def _check_role(objects: Objects, authorizer: Authorizer, resource: str, new: Object, old: Object | None) -> None:
    """The admission function of roles. Raises StatusError 403 if `new` has rules that the writing user has not."""
    user = _user_to_check()
    if user is None or (old is not None and _is_collector_update(new, old)):
        return
    metadata = new["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    plural = resource.partition(".")[0]
    requested = Attributes("escalate", group=_RBAC_GROUP, resource=plural, namespace=namespace, name=name)
    if authorizer.decide(user, requested).allowed:
        return
    reason = _describe_excess(authorizer, user, namespace, policy_rules.rules_of(new))
    if not reason and (new.get("aggregationRule") or (old or {}).get("aggregationRule")):
        reason = _AGGREGATION_MESSAGE if _describe_excess(authorizer, user, "", EVERYTHING) else ""
    if reason:
        raise api_errors.forbidden(objects.resource(resource), name, reason)


def _check_binding(objects: Objects, authorizer: Authorizer, resource: str, new: Object, old: Object | None) -> None:
    """The admission function of bindings.

    Raises StatusError 404 if the role does not exist, 403 if it has rules that the writing user has not.
    """
    user = _user_to_check()
    if user is None or (old is not None and _is_collector_update(new, old)):
        return
    namespace, reference = new["metadata"].get("namespace", ""), new.get("roleRef") or {}
    is_role = reference.get("kind") == "Role"
    role_name = reference.get("name", "")
    role = (namespace if is_role else "", role_name)
    plural = "roles" if is_role else "clusterroles"
    requested = Attributes("bind", group=_RBAC_GROUP, resource=plural, namespace=namespace, name=role_name)
    if authorizer.decide(user, requested).allowed:
        return
    rules = authorizer.policy.rules_of_role(role)
    if rules is None:
        # as kube-apiserver: the resource of the binding with the name of the role
        raise api_errors.not_found(objects.resource(resource), role_name)
    reason = _describe_excess(authorizer, user, namespace, rules)
    if reason:
        raise api_errors.forbidden(objects.resource(resource), new["metadata"].get("name", ""), reason)


def _user_to_check() -> User | None:
    """The writing user, None if the user may do everything. Raises StatusError 403 if no user is set."""
    user = acting_user.current()
    return None if users.MASTERS in user.groups else user


def _describe_excess(authorizer: Authorizer, user: User, namespace: str, requested: tuple[PolicyRule, ...]) -> str:
    """kube-apiserver's message about the rules that `user` would grant but does not have; empty if there are none."""
    own_rules, errors = authorizer.policy.rules(user, namespace)
    lacking = policy_rules.find_uncovered(own_rules, requested)
    if not lacking:
        return ""
    lines = sorted({policy_rules.format_rule(rule) for rule in policy_rules.merge_verbs(lacking)})
    groups = policy_rules.quoted(user.all_groups)
    introduction = f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n'
    resolution_errors = f"; resolution errors: [{' '.join(errors)}]" if errors else ""
    return introduction + "\n".join(lines) + resolution_errors


def _is_collector_update(new: Object, old: Object) -> bool:
    """Whether an update changes only the fields that the garbage collector changes in order to delete the object."""
    return _without_collector_fields(new) == _without_collector_fields(old)


def _without_collector_fields(obj: Object) -> Object:
    """The object without the fields that the garbage collector and the server set: no escalation changes them."""
    ignored = (*_COLLECTOR_FIELDS, "managedFields", "resourceVersion")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ignored}
    return {**obj, "metadata": metadata}
