"""Questions about access: who am I, may I do this, what may I do, whose token is this.

Called by `dispatch` for POSTs to the review resources, which are answered and never stored.

Source: authentication.k8s.io/v1 and authorization.k8s.io/v1, upstream's validation of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.apiserver.handlers import review_selectors
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.auth.policy_rules import EVERYTHING, PolicyRule
from podscaler.controlplane.auth.rules import Attributes, Authorizer, aggregated
from podscaler.controlplane.auth.tokens import Authenticator, TokenFault
from podscaler.controlplane.registry.users import MASTERS, User

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, and those who know the answers."""

    user: User
    authenticator: Authenticator
    authorizer: Authorizer
    now_ns: int = 0


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of question.

    Attributes:
        message: the schema's name.
        answer: from the asked object (which it may complete) and who asks to its `status`; may raise StatusError.
    """

    group: str
    plural: str
    kind: str
    message: str
    answer: Callable[[Object, Asking], Object]
    namespaced: bool = False

    @property
    def offer(self) -> CreateOnly:
        """The question as OpenAPI documents describe it."""
        return CreateOnly(self.group, "v1", self.plural, self.kind, self.message, self.namespaced)

    @property
    def singular(self) -> str:
        """The name of one."""
        return self.kind.lower()


def _self_subject(review: Object, asking: Asking) -> Object:
    review["metadata"] = {"creationTimestamp": rfc3339(asking.now_ns)}
    return {"userInfo": user_info(asking.user)}


def _token(review: Object, asking: Asking) -> Object:
    spec = _spec(review)
    if not spec.get("token"):
        raise http_errors.bad_request("token is required for TokenReview in authentication")
    audiences = list(spec.get("audiences") or asking.authenticator.audiences)
    found = asking.authenticator.user_of_token(spec["token"], audiences)
    if isinstance(found, TokenFault):
        return {"user": {}, "error": found.message}
    common = [audience for audience in audiences if audience in found.audiences]
    if not common:
        raise http_errors.internal("error validating audiences")
    return {"authenticated": True, "user": user_info(found.user), "audiences": common}


def _self_access(review: Object, asking: Asking) -> Object:
    spec = _spec(review)
    _check(_attribute_faults(spec) + _metadata_faults(review))
    return _judged(spec, asking.user, asking.authorizer)


def _subject_access(review: Object, asking: Asking) -> Object:
    spec = _spec(review)
    _check(_attribute_faults(spec) + _subject_faults(spec) + _metadata_faults(review))
    return _judged(spec, _subject(spec), asking.authorizer)


def _local_access(review: Object, asking: Asking) -> Object:
    spec = _spec(review)
    namespace = (review.get("metadata") or {}).get("namespace", "")
    faults = _attribute_faults(spec) + _subject_faults(spec) + _metadata_faults(review, but_namespace=True)
    wanted = spec.get("resourceAttributes")
    if wanted is not None and wanted.get("namespace", "") != namespace:
        path = "spec.resourceAttributes.namespace"
        faults.append(field.invalid(path, wanted.get("namespace", ""), "must match metadata.namespace"))
    if (on_path := spec.get("nonResourceAttributes")) is not None:
        text = "disallowed on this kind of request"
        faults.append(field.invalid("spec.nonResourceAttributes", _go_path(on_path), text))
    _check(faults)
    return _judged(spec, _subject(spec), asking.authorizer)


def _self_rules(review: Object, asking: Asking) -> Object:
    namespace = _spec(review).get("namespace", "")
    if not namespace:
        raise http_errors.bad_request("no namespace on request")
    rules, errors = asking.authorizer.policy.rules(asking.user, namespace)
    if MASTERS in asking.user.groups and not rules:
        rules = list(EVERYTHING)
    review["spec"] = {}  # upstream answers without the namespace
    status: Object = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [rule.to_object() for rule in rules if rule.urls],
        "incomplete": bool(errors),
    }
    return {**status, "evaluationError": aggregated(errors)} if errors else status


def _resource_rule(rule: PolicyRule) -> Object:
    return {name: value for name, value in rule.to_object().items() if name != "nonResourceURLs"}


def _spec(review: Object) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = review.get("spec") or {}
    return spec


def _subject(spec: Mapping[str, Any]) -> User:
    """The user that a review is about: with the groups that it states and no others."""
    extra = spec.get("extra") or {}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra, is_known=False)


def _judged(spec: Mapping[str, Any], user: User, authorizer: Authorizer) -> Object:
    decision = authorizer.decide(user, _attributes(spec))
    told = {
        "reason": decision.reason,
        "evaluationError": review_selectors.evaluation_error(spec.get("resourceAttributes") or {}),
    }
    return {"allowed": decision.allowed} | {name: text for name, text in told.items() if text}


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        on_path = spec.get("nonResourceAttributes") or {}
        return Attributes(on_path.get("verb", ""), path=on_path.get("path", ""))
    names = ("group", "resource", "subresource", "namespace", "name")
    return Attributes(wanted.get("verb", ""), **{name: wanted.get(name, "") for name in names})


_EXACTLY_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def _attribute_faults(spec: Mapping[str, Any]) -> list[FieldError]:
    wanted, on_path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wanted is not None and on_path is not None:
        return [field.invalid("spec", _go_path(on_path), _EXACTLY_ONE)]
    if wanted is None:
        return [field.invalid("spec", None, _EXACTLY_ONE)] if on_path is None else []
    return review_selectors.faults(wanted)


def _go_path(on_path: Mapping[str, Any]) -> Object:
    """Attributes of a path as upstream's messages show them: its internal type has the Go names of fields."""
    return {"Path": on_path.get("path", ""), "Verb": on_path.get("verb", "")}


def _subject_faults(spec: Mapping[str, Any]) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [field.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_faults(review: Object, *, but_namespace: bool = False) -> list[FieldError]:
    metadata = {name: value for name, value in (review.get("metadata") or {}).items() if value}
    metadata.pop("managedFields", None)
    if but_namespace:
        metadata.pop("namespace", None)
    if not metadata:
        return []
    text = "must be empty except for namespace" if but_namespace else "must be empty"
    return [field.invalid("metadata", metadata, text)]


def _check(faults: list[FieldError]) -> None:
    """Raise StatusError 422 if there are faults; upstream does not name the kind."""
    if faults:
        raise field.refusal(group=_AUTHORIZATION, kind="", name="", errors=faults)


def user_info(user: User) -> Object:
    """A user as authentication.k8s.io/v1 UserInfo."""
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    info["groups"] = list(user.all_groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


REVIEWS = (
    Review(
        _AUTHENTICATION,
        "selfsubjectreviews",
        "SelfSubjectReview",
        "authentication/v1.SelfSubjectReview",
        _self_subject,
    ),
    Review(_AUTHENTICATION, "tokenreviews", "TokenReview", "authentication/v1.TokenReview", _token),
    Review(
        _AUTHORIZATION,
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        "authorization/v1.LocalSubjectAccessReview",
        _local_access,
        namespaced=True,
    ),
    Review(
        _AUTHORIZATION,
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        "authorization/v1.SelfSubjectAccessReview",
        _self_access,
    ),
    Review(
        _AUTHORIZATION,
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        "authorization/v1.SelfSubjectRulesReview",
        _self_rules,
    ),
    Review(
        _AUTHORIZATION,
        "subjectaccessreviews",
        "SubjectAccessReview",
        "authorization/v1.SubjectAccessReview",
        _subject_access,
    ),
)
