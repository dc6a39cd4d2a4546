"""Questions about access: who am I, may I do this, what may I do.

Called by `app` for POSTs to the review resources, which are answered and never stored.

Source: authentication.k8s.io/v1 and authorization.k8s.io/v1. Differs: token reviews and reviews about others come with
role-based rules; until then the resources are served, and everyone but the asker is judged by the groups they state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.openapi import CreateOnly
from podscaler.api.resources import Object
from podscaler.controlplane.access import rules
from podscaler.controlplane.access.rules import Attributes
from podscaler.controlplane.access.tokens import Authenticator
from podscaler.controlplane.access.users import AUTHENTICATED, MASTERS, User


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of question.

    Attributes:
        message: the schema's name.
        answer: from the asked object and who asks to its `status`.
    """

    group: str
    plural: str
    kind: str
    message: str
    answer: Callable[[Object, User, Authenticator], Object]
    namespaced: bool = False

    @property
    def offer(self) -> CreateOnly:
        """The question as OpenAPI documents describe it."""
        return CreateOnly(self.group, "v1", self.plural, self.kind, self.message, self.namespaced)

    @property
    def singular(self) -> str:
        """The name of one."""
        return self.kind.lower()


def _self_subject(review: Object, user: User, _tokens: Authenticator) -> Object:
    del review
    return {"userInfo": _user_info(user)}


def _token(review: Object, _user: User, tokens: Authenticator) -> Object:
    found = tokens.user_of(f"Bearer {_spec(review).get('token', '')}")
    return {"authenticated": True, "user": _user_info(found)} if found else {"user": {}}


def _self_access(review: Object, user: User, _tokens: Authenticator) -> Object:
    return _judged(_spec(review), user)


def _subject_access(review: Object, _user: User, _tokens: Authenticator) -> Object:
    spec = _spec(review)
    groups = tuple(group for group in spec.get("groups") or () if group != AUTHENTICATED)
    return _judged(spec, User(spec.get("user", ""), groups))


def _self_rules(review: Object, user: User, _tokens: Authenticator) -> Object:
    del review
    if MASTERS in user.groups:
        resource_rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        return {"resourceRules": resource_rules, "nonResourceRules": [_paths(["*"], ["*"])], "incomplete": False}
    own = sorted({group for group, _ in rules.SELF_REVIEWS})
    resource_rules = [
        {"verbs": ["create"], "apiGroups": [group], "resources": sorted(_self_reviews_of(group))} for group in own
    ]
    shown = [path for known in rules.DISCOVERY_PATHS for path in (known, f"{known}/*")]
    return {"resourceRules": resource_rules, "nonResourceRules": [_paths(["get"], shown)], "incomplete": False}


def _self_reviews_of(group: str) -> list[str]:
    return [plural for own_group, plural in rules.SELF_REVIEWS if own_group == group]


def _paths(verbs: list[str], paths: list[str]) -> Object:
    return {"verbs": verbs, "nonResourceURLs": paths}


def _spec(review: Object) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = review.get("spec") or {}
    return spec


def _judged(spec: Mapping[str, Any], user: User) -> Object:
    return {"allowed": rules.is_allowed(user, _attributes(spec))}


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    on_path = spec.get("nonResourceAttributes")
    if on_path:
        return Attributes(on_path.get("verb", ""), path=on_path.get("path", ""))
    wanted = spec.get("resourceAttributes") or {}
    names = ("group", "resource", "subresource", "namespace", "name")
    return Attributes(wanted.get("verb", ""), **{name: wanted.get(name, "") for name in names})


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.all_groups)}
    if user.uid:
        info["uid"] = user.uid
    return info


_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"

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
        _subject_access,
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
