"""Who may do what: the one place that is asked before a request is carried out.

Called by `apiserver.auth_filter` for every request, by the access reviews, by `impersonation` and `escalation`. Members
of system:masters may do everything; everyone else may do what the roles bound to them say.

Source: upstream's RBAC authorizer and its refusals; tests/conformance/golden/errors.jsonl.
"""

from dataclasses import dataclass

from podscaler.api.text import quoting
from podscaler.base.errors import StatusError
from podscaler.controlplane.auth.policy_index import PolicyIndex, missing_role
from podscaler.controlplane.auth.policy_rules import PolicyRule
from podscaler.controlplane.registry.users import MASTERS, User


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do: to a resource, or (with `path`) to a path that is none.

    Attributes:
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; lower-case HTTP
            methods for paths.
        resource: the plural; empty for paths.
        subresource, namespace, name: empty where there is none.
    """

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def is_met_by(self, rule: PolicyRule) -> bool:
        """Whether a rule lets somebody do it."""
        if not self.resource:
            return rule.allows_path(self.verb, self.path)
        return rule.allows_resource(self.verb, self.group, self.resource, self.subresource, self.name)


@dataclass(frozen=True, slots=True)
class AuthorizationDecision:
    """Whether something is allowed, and why (empty where there is nothing to say)."""

    allowed: bool
    reason: str = ""


MASTERS_MAY = AuthorizationDecision(allowed=True)
NOBODY_ALLOWS_IT = AuthorizationDecision(allowed=False)


class Authorizer:
    """Decides by the roles and bindings of `policy`."""

    def __init__(self, policy: PolicyIndex) -> None:
        self.policy = policy

    def decide(self, user: User, wanted: Attributes) -> AuthorizationDecision:
        """Whether `user` may do that."""
        if MASTERS in user.groups:
            return MASTERS_MAY
        errors: dict[str, None] = {}
        for grant in self.policy.grants(user, wanted.namespace if wanted.resource else ""):
            rules = self.policy.rules_of_role(grant.role)
            if rules is None:
                errors[missing_role(grant.role)] = None
            elif any(map(wanted.is_met_by, rules)):
                return AuthorizationDecision(allowed=True, reason=f"RBAC: allowed by {grant.reason}")
        if errors:
            return AuthorizationDecision(allowed=False, reason=f"rbac: RBAC: {aggregated(list(errors))}")
        return NOBODY_ALLOWS_IT

    def authorize(self, user: User, wanted: Attributes) -> AuthorizationDecision:
        """Return the decision if `user` may do that.

        Raises:
            StatusError: 403 in upstream's words.
        """
        decision = self.decide(user, wanted)
        if not decision.allowed:
            raise refusal(user, wanted, decision.reason)
        return decision


def aggregated(errors: list[str]) -> str:
    """Several errors as Go prints them together."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def refusal(user: User, wanted: Attributes, reason: str = "") -> StatusError:
    """The 403 for what `user` may not do."""
    return _resource_refusal(user, wanted, reason) if wanted.resource else _path_refusal(user, wanted, reason)


def _path_refusal(user: User, wanted: Attributes, reason: str) -> StatusError:
    text = f"forbidden: User {quoting.quoted(user.name)} cannot {wanted.verb} path {quoting.quoted(wanted.path)}"
    return StatusError(_with_reason(text, reason), code=403, reason="Forbidden", details={})


def _resource_refusal(user: User, wanted: Attributes, reason: str) -> StatusError:
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    subject = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    if wanted.name:
        subject += f" {quoting.quoted(wanted.name)}"
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    text = (
        f'{subject} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{full}" '
        f'in API group "{wanted.group}" {scope}'
    )
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    shown = {key: value for key, value in details.items() if value}
    return StatusError(_with_reason(text, reason), code=403, reason="Forbidden", details=shown)


def _with_reason(text: str, reason: str) -> str:
    return f"{text}: {reason}" if reason else text
