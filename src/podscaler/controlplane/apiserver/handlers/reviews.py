"""Evaluates reviews: TokenReview, SelfSubjectReview, SubjectAccessReview and its variants (`kubectl auth can-i`).

`dispatch` calls `Review.evaluate` for POSTs to the review resources; a review is returned with its status, never
stored. A new kind of review: an `_evaluate_...` function and a line in `REVIEWS`.

Source: authentication.k8s.io/v1 and authorization.k8s.io/v1, kube-apiserver's validation of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.apiserver.handlers import review_selectors
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.auth.account_tokens import DEFAULT_AUDIENCES, TokenRejection
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer, join_errors
from podscaler.controlplane.auth.policy_rules import EVERYTHING
from podscaler.controlplane.registry.users import MASTERS, User

_AUTHENTICATION_GROUP = "authentication.k8s.io"
_AUTHORIZATION_GROUP = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """The user who sent a review, and the parts of the server that evaluate it; `now_ns` is the wall clock."""

    user: User
    authenticator: Authenticator
    authorizer: Authorizer
    now_ns: int = 0


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of review.

    Attributes:
        message: the schema's name.
        evaluate: from the review (which it may complete) and its context to its `status`. Raises StatusError 400, 422,
            500.
    """

    group: str
    plural: str
    kind: str
    message: str
    evaluate: Callable[[Object, ReviewContext], Object]
    namespaced: bool = False

    @property
    def endpoint(self) -> CreateOnly:
        """The resource as OpenAPI documents describe it."""
        return CreateOnly(self.group, "v1", self.plural, self.kind, self.message, namespaced=self.namespaced)

    @property
    def singular(self) -> str:
        """The singular name, for discovery."""
        return self.kind.lower()


def _evaluate_self_subject(review: Object, context: ReviewContext) -> Object:
    """The status of a SelfSubjectReview: the user who sent it."""
    review["metadata"] = {"creationTimestamp": rfc3339(context.now_ns)}
    return {"userInfo": user_info(context.user)}


def _evaluate_token(review: Object, context: ReviewContext) -> Object:
    """The status of a TokenReview: whose token it is, for which audiences."""
    spec = _spec(review)
    if not spec.get("token"):
        raise http_errors.bad_request("token is required for TokenReview in authentication")
    audiences = list(spec.get("audiences") or DEFAULT_AUDIENCES)
    token_user = context.authenticator.user_of_token(spec["token"], audiences)
    if isinstance(token_user, TokenRejection):
        return {"user": {}, "error": token_user.message}
    common_audiences = [audience for audience in audiences if audience in token_user.audiences]
    if not common_audiences:
        raise http_errors.internal("error validating audiences")
    return {"authenticated": True, "user": user_info(token_user.user), "audiences": common_audiences}


def _evaluate_self_access(review: Object, context: ReviewContext) -> Object:
    """The status of a SelfSubjectAccessReview: whether the user who sent it may make a request."""
    spec = _spec(review)
    _check_no_errors(_attribute_errors(spec) + _metadata_errors(review))
    return _access_status(spec, context.user, context.authorizer)


def _evaluate_subject_access(review: Object, context: ReviewContext) -> Object:
    """The status of a SubjectAccessReview: whether the user in its spec may make a request."""
    spec = _spec(review)
    _check_no_errors(_attribute_errors(spec) + _subject_errors(spec) + _metadata_errors(review))
    return _access_status(spec, _subject(spec), context.authorizer)


def _evaluate_local_access(review: Object, context: ReviewContext) -> Object:
    """The status of a LocalSubjectAccessReview, which is about its own namespace only."""
    spec = _spec(review)
    namespace = (review.get("metadata") or {}).get("namespace", "")
    errors = _attribute_errors(spec) + _subject_errors(spec) + _metadata_errors(review, allows_namespace=True)
    resource_attributes = spec.get("resourceAttributes")
    if resource_attributes is not None and resource_attributes.get("namespace", "") != namespace:
        field_path = "spec.resourceAttributes.namespace"
        errors.append(
            field.invalid(field_path, resource_attributes.get("namespace", ""), "must match metadata.namespace")
        )
    if (non_resource_attributes := spec.get("nonResourceAttributes")) is not None:
        message = "disallowed on this kind of request"
        errors.append(field.invalid("spec.nonResourceAttributes", _go_attributes(non_resource_attributes), message))
    _check_no_errors(errors)
    return _access_status(spec, _subject(spec), context.authorizer)


def _evaluate_self_rules(review: Object, context: ReviewContext) -> Object:
    """The status of a SelfSubjectRulesReview: the rules of the user in a namespace."""
    namespace = _spec(review).get("namespace", "")
    if not namespace:
        raise http_errors.bad_request("no namespace on request")
    rules, errors = context.authorizer.policy.rules(context.user, namespace)
    if MASTERS in context.user.groups and not rules:  # the group has all rights, also without a rule
        rules = list(EVERYTHING)
    review["spec"] = {}  # kube-apiserver returns it without the namespace
    status: Object = {
        "resourceRules": [replace(rule, urls=()).to_object() for rule in rules if rule.resources],
        "nonResourceRules": [rule.to_object() for rule in rules if rule.urls],
        "incomplete": bool(errors),
    }
    return {**status, "evaluationError": join_errors(errors)} if errors else status


def _spec(review: Object) -> Mapping[str, Any]:
    """The spec of a review; empty without one."""
    spec: Mapping[str, Any] = review.get("spec") or {}
    return spec


def _subject(spec: Mapping[str, Any]) -> User:
    """The user in a review's spec, with only the groups in the spec."""
    extra = spec.get("extra") or {}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra, is_known=False)


def _access_status(spec: Mapping[str, Any], user: User, authorizer: Authorizer) -> Object:
    """The status of an access review: whether RBAC allows the request of the spec to the user, and why."""
    decision = authorizer.decide(user, _attributes(spec))
    optional_fields = {
        "reason": decision.reason,
        "evaluationError": review_selectors.evaluation_error(spec.get("resourceAttributes") or {}),
    }
    return {"allowed": decision.allowed} | {name: content for name, content in optional_fields.items() if content}


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    """The request that an access review is about."""
    resource_attributes = spec.get("resourceAttributes")
    if resource_attributes is None:
        non_resource_attributes = spec.get("nonResourceAttributes") or {}
        return Attributes(non_resource_attributes.get("verb", ""), path=non_resource_attributes.get("path", ""))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: resource_attributes.get(name, "") for name in fields})


_EXACTLY_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def _attribute_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the attributes in an access review: exactly one kind of them, with valid selectors."""
    resource_attributes, non_resource_attributes = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource_attributes is not None and non_resource_attributes is not None:
        return [field.invalid("spec", _go_attributes(non_resource_attributes), _EXACTLY_ONE)]
    if resource_attributes is None:
        return [field.invalid("spec", None, _EXACTLY_ONE)] if non_resource_attributes is None else []
    return review_selectors.selector_field_errors(resource_attributes)


def _go_attributes(non_resource_attributes: Mapping[str, Any]) -> Object:
    """`nonResourceAttributes` as kube-apiserver's messages show them, with the field names of its Go type."""
    return {"Path": non_resource_attributes.get("path", ""), "Verb": non_resource_attributes.get("verb", "")}


def _subject_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    """The error of a spec without user and groups."""
    if spec.get("user") or spec.get("groups"):
        return []
    return [field.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_errors(review: Object, *, allows_namespace: bool = False) -> list[FieldError]:
    """The error of metadata that an access review may not have: all but managedFields and the namespace, if allowed."""
    metadata = {name: content for name, content in (review.get("metadata") or {}).items() if content}
    metadata.pop("managedFields", None)
    if allows_namespace:
        metadata.pop("namespace", None)
    if not metadata:
        return []
    message = "must be empty except for namespace" if allows_namespace else "must be empty"
    return [field.invalid("metadata", metadata, message)]


def _check_no_errors(errors: list[FieldError]) -> None:
    """Check that there are no errors. Raises StatusError 422, as kube-apiserver without the kind."""
    if errors:
        raise field.invalid_object(group=_AUTHORIZATION_GROUP, kind="", name="", errors=errors)


def user_info(user: User) -> Object:
    """A user as authentication.k8s.io/v1 UserInfo."""
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    info["groups"] = list(user.all_groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _review(group: str, kind: str, evaluate: Callable[[Object, ReviewContext], Object], **options: bool) -> Review:
    """A kind of review; `options` are further fields of `Review`."""
    message = f"{group.partition('.')[0]}/v1.{kind}"
    return Review(group, f"{kind.lower()}s", kind, message, evaluate, **options)


REVIEWS = (
    _review(_AUTHENTICATION_GROUP, "SelfSubjectReview", _evaluate_self_subject),
    _review(_AUTHENTICATION_GROUP, "TokenReview", _evaluate_token),
    _review(_AUTHORIZATION_GROUP, "LocalSubjectAccessReview", _evaluate_local_access, namespaced=True),
    _review(_AUTHORIZATION_GROUP, "SelfSubjectAccessReview", _evaluate_self_access),
    _review(_AUTHORIZATION_GROUP, "SelfSubjectRulesReview", _evaluate_self_rules),
    _review(_AUTHORIZATION_GROUP, "SubjectAccessReview", _evaluate_subject_access),
)
