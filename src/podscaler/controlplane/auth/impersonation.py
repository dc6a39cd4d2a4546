"""Implements user impersonation (`kubectl --as`): reads the `Impersonate-*` headers and checks the rights they need.

`apiserver.auth_filter` calls `requested_user` for every request, then `impersonate`. The user needs one of two sets of
rights. Constrained: the verb `impersonate-on:MODE:VERB` on the resource of the request, and `impersonate:MODE` on each
part (user name, groups, uid, extra) of the impersonated user. Legacy: the verb `impersonate` on each part. With
`Impersonate-User: jane` and `Impersonate-Group: devs` that is `impersonate` on users/jane and on groups/devs. The error
is the first one of the most specific mode. A new mode: `_modes`, and what it requires in `_required_permissions`.

Source: User Impersonation (Kubernetes documentation), KEP-5284; tests/conformance/golden/errors.jsonl.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from multidict import MultiMapping

from podscaler.base.errors import StatusError
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer, forbidden
from podscaler.controlplane.registry import users
from podscaler.controlplane.registry.users import User

_AUTHENTICATION_GROUP = "authentication.k8s.io"
_EXTRA_PREFIX = "impersonate-extra-"

_NODE_NAME_EXTRA = "authentication.kubernetes.io/node-name"
"""The key of `User.extra` with the node of a service account's pod (`account_tokens` sets it)."""


@dataclass(frozen=True, slots=True)
class _Mode:
    """One mode of impersonation; `name` is empty for the legacy one."""

    name: str

    @property
    def verb(self) -> str:
        """The verb on the parts of the impersonated user."""
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        """The API group of users, groups, service accounts and nodes in this mode."""
        return _AUTHENTICATION_GROUP if self.name else ""


_LEGACY_MODE = _Mode("")


def requested_user(headers: MultiMapping[str]) -> User | None:
    """The user that the headers ask to impersonate; None without such headers, or with an empty user name alone.

    Args:
        headers: the request's headers, by name in any case.

    Raises StatusError 400 for a group, uid or extra without a user name.
    """
    if not any(header.lower().startswith("impersonate-") for header in headers):
        return None
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    uid = headers.get("Impersonate-Uid", "")
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA_PREFIX):
            extra.setdefault(unquote(header[len(_EXTRA_PREFIX) :].lower()), []).append(value)
    if name:
        return User(name, groups, uid, extra)
    if not (groups or uid or extra):
        return None
    shown = f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{_go_texts(groups)}, Extra:{_go_extra(extra)}}}'
    message = f"requested {shown} without impersonating a user name"
    raise StatusError(message, code=400, reason="BadRequest")


def impersonate(impersonated: User, user: User, request: Attributes, authorizer: Authorizer) -> User:
    """The impersonated user, with the groups that its kind implies (those of its namespace for a service account).

    Args:
        impersonated: the requested user.
        user: the user who sent the request.
        request: the attributes of the request.
        authorizer: checks the rights of `user`.

    Raises StatusError 403 if `user` lacks a right.
    """
    errors: list[StatusError] = []
    for mode in _modes(impersonated, user):
        error = _find_error(mode, impersonated, user, request, authorizer)
        if error is None:
            return _add_implied_groups(impersonated)
        errors.append(error)
    raise errors[0]  # there is one at least, as the legacy mode always applies


def _modes(impersonated: User, user: User) -> Iterator[_Mode]:
    """The modes that apply to an impersonated user, most specific first; the legacy one is always the last.

    All but `user-info` and the legacy mode apply only to a user name without groups, uid and extra.
    """
    is_bare = not (impersonated.groups or impersonated.uid or impersonated.extra)
    account, node = users.parse_account_name(impersonated.name), _parse_node_name(impersonated.name)
    if node and is_bare:
        if users.parse_account_name(user.name) and node in user.extra.get(_NODE_NAME_EXTRA, ()):
            yield _Mode("associated-node")
        yield _Mode("arbitrary-node")
    elif account and is_bare:
        yield _Mode("serviceaccount")
    elif not (node or account):
        yield _Mode("user-info")
    yield _LEGACY_MODE


def _find_error(
    mode: _Mode, impersonated: User, user: User, request: Attributes, authorizer: Authorizer
) -> StatusError | None:
    """The error 403 of the first missing right of a mode, None if `user` has all rights.

    The modes besides the legacy one never impersonate the group system:masters.
    """
    permissions = list(_required_permissions(mode, impersonated))
    if mode.name:
        permissions.insert(0, replace(request, verb=f"impersonate-on:{mode.name}:{request.verb}"))
    for attributes in permissions:
        decision = authorizer.decide(user, attributes)
        if not decision.allowed:
            return forbidden(user, attributes, decision.reason)
        if mode.name and (attributes.resource, attributes.name) == ("groups", users.MASTERS):
            return forbidden(user, attributes, f"impersonating the {users.MASTERS} group is not allowed")
    return None


def _required_permissions(mode: _Mode, impersonated: User) -> Iterator[Attributes]:
    """The permissions that `mode` requires, one for each part of the impersonated user."""
    account, node = users.parse_account_name(impersonated.name), _parse_node_name(impersonated.name)
    identity_permission = Attributes(mode.verb, group=mode.group)
    if account:
        namespace, account_name = account
        yield replace(identity_permission, resource="serviceaccounts", namespace=namespace, name=account_name)
    elif node and mode.name:
        node_name = "*" if mode.name == "associated-node" else node  # `_modes` has compared it with the user's own node
        yield replace(identity_permission, resource="nodes", name=node_name)
    else:
        yield replace(identity_permission, resource="users", name=impersonated.name)
    for group in impersonated.groups:
        yield replace(identity_permission, resource="groups", name=group)
    detail_permission = Attributes(mode.verb, group=_AUTHENTICATION_GROUP)  # in the legacy mode, too
    if impersonated.uid:
        yield replace(detail_permission, resource="uids", name=impersonated.uid)
    for key, values in impersonated.extra.items():
        for value in values:
            yield replace(detail_permission, resource="userextras", subresource=key, name=value)


def _add_implied_groups(impersonated: User) -> User:
    """The impersonated user with the groups that every user of its kind has."""
    if impersonated.name == users.ANONYMOUS_NAME:
        groups = [group for group in impersonated.groups if group != users.UNAUTHENTICATED]
        return replace(impersonated, groups=(*groups, users.UNAUTHENTICATED))
    account = users.parse_account_name(impersonated.name)
    if account and not impersonated.groups:
        namespace, _ = account
        return replace(impersonated, groups=users.account_groups(namespace))
    return impersonated


def _parse_node_name(name: str) -> str:
    """The node's name in a user name `system:node:NAME`, empty for other users."""
    return name.removeprefix(users.NODE_PREFIX) if name.startswith(users.NODE_PREFIX) else ""


def _go_texts(texts: Sequence[str]) -> str:
    """A list as Go's format %#v prints it, as in kube-apiserver's message."""
    quoted = ", ".join(f'"{text}"' for text in texts)
    return f"[]string{{{quoted}}}" if texts else "[]string(nil)"


def _go_extra(extra: Mapping[str, Sequence[str]]) -> str:
    """The `extra` of a user as Go's format %#v prints it."""
    pairs = ", ".join(f'"{key}":{_go_texts(extra[key])}' for key in sorted(extra))
    return f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
