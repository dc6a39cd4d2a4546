"""Authorizes requests by RBAC: members of system:masters may do everything, others what their roles allow.

`apiserver.auth_filter` calls it for every request, `apiserver.handlers.reviews` for access reviews; `impersonation` and
`admission.rbac_escalation` check further permissions.

A request is described by its `Attributes`, for example get pods default/web: Attributes("get", resource="pods",
namespace="default", name="web"). `policy_index` finds the user's roles, `policy_rules` evaluates their rules.

Source: kube-apiserver's RBAC authorizer and its messages; tests/conformance/golden/errors.jsonl.
"""

from dataclasses import dataclass

from podscaler.api.text import quoting
from podscaler.base.errors import StatusError
from podscaler.controlplane.auth.policy_index import PolicyIndex, missing_role
from podscaler.controlplane.auth.policy_rules import PolicyRule
from podscaler.controlplane.registry.users import MASTERS, User


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a request to a resource, or (with `path`) to a non-resource URL.

    Attributes:
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the lower-case HTTP
            method for non-resource URLs.
        path: the path of a non-resource URL (`/healthz`), else empty.
        group: the API group, empty for the core group.
        resource: the plural of the kind; empty for non-resource URLs.
        subresource, namespace, name: empty if the request has none.
    """

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def is_allowed_by(self, rule: PolicyRule) -> bool:
        """Whether a rule allows the request."""
        if not self.resource:
            return rule.allows_path(self.verb, self.path)
        return rule.allows_resource(self.verb, self.group, self.resource, self.subresource, self.name)


@dataclass(frozen=True, slots=True)
class AuthorizationDecision:
    """Whether a request is allowed (if not, no rule allows it), and the reason in kube-apiserver's words or empty."""

    allowed: bool
    reason: str = ""


ALLOWED = AuthorizationDecision(allowed=True)
NO_OPINION = AuthorizationDecision(allowed=False)
"""No rule allows the request."""


class Authorizer:
    """Decides which requests a user may make.

    Args:
        policy: the stored roles and bindings; rule reviews and `admission.rbac_escalation` read them here, too.
    """

    def __init__(self, policy: PolicyIndex) -> None:
        self.policy = policy

    def decide(self, user: User, attributes: Attributes) -> AuthorizationDecision:
        """Whether `user` may make a request with these attributes."""
        if MASTERS in user.groups:
            return ALLOWED
        errors: dict[str, None] = {}  # each message once, in order
        namespace = attributes.namespace if attributes.resource else ""  # only ClusterRoles allow non-resource URLs
        for grant in self.policy.grants(user, namespace):
            rules = self.policy.rules_of_role(grant.role)
            if rules is None:
                errors[missing_role(grant.role)] = None
            elif any(map(attributes.is_allowed_by, rules)):
                return AuthorizationDecision(allowed=True, reason=f"RBAC: allowed by {grant.reason}")
        if errors:
            return AuthorizationDecision(allowed=False, reason=f"rbac: RBAC: {join_errors(list(errors))}")
        return NO_OPINION

    def authorize(self, user: User, attributes: Attributes) -> AuthorizationDecision:
        """The decision of `decide`, if it allows the request.

        Raises StatusError 403 with kube-apiserver's message, if it does not.
        """
        decision = self.decide(user, attributes)
        if not decision.allowed:
            raise forbidden(user, attributes, decision.reason)
        return decision


def join_errors(errors: list[str]) -> str:
    """Several errors as Go's aggregate error prints them; for other messages of `apiserver`, too."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def forbidden(user: User, attributes: Attributes, reason: str = "") -> StatusError:
    """The error 403 for a request that `user` may not make; a `reason` that is not empty is appended."""
    verb, group, resource, name = attributes.verb, attributes.group, attributes.resource, attributes.name
    ending = f": {reason}" if reason else ""
    if not resource:
        message = f"forbidden: User {quoting.quoted(user.name)} cannot {verb} path {quoting.quoted(attributes.path)}"
        return StatusError(message + ending, code=403, reason="Forbidden", details={})
    full_resource = f"{resource}/{attributes.subresource}" if attributes.subresource else resource
    subject = f"{resource}.{group}" if group else resource
    if name:
        subject += f" {quoting.quoted(name)}"
    scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    action = f'cannot {verb} resource "{full_resource}" in API group "{group}" {scope}'
    message = f'{subject} is forbidden: User "{user.name}" {action}'
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", resource)) if value}
    return StatusError(message + ending, code=403, reason="Forbidden", details=details)
