"""Acting for somebody else: the `Impersonate-*` headers, and who may send them.

Called by `apiserver.auth_filter` for every request with such a header. Two ways lead to it. Constrained: the verb
`impersonate-on:MODE:VERB` on what the request is about, and `impersonate:MODE` on each part of the wanted identity.
Legacy: the verb `impersonate` on each part. The first refusal of the most specific mode is the one that is told.

Source: User Impersonation (Kubernetes documentation), KEP-5284; tests/conformance/golden/errors.jsonl.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import unquote

from podscaler.base.errors import StatusError
from podscaler.controlplane.auth.rules import Attributes, Authorizer, refusal
from podscaler.controlplane.registry import users
from podscaler.controlplane.registry.users import User

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA_PREFIX = "impersonate-extra-"

_NODE_KEY = "authentication.kubernetes.io/node-name"


class RequestHeaders(Protocol):
    """The headers of a request, by name in any case."""

    def __iter__(self) -> Iterator[str]:
        """The names."""
        ...

    def get(self, name: str, default: str) -> str:
        """The first value."""
        ...

    def getall(self, name: str, default: Sequence[str]) -> Sequence[str]:
        """All values."""
        ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Every header."""
        ...


@dataclass(frozen=True, slots=True)
class _Mode:
    """One way to be allowed: `name` is empty for the legacy one."""

    name: str

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        """The API group of users, groups, service accounts and nodes in this mode."""
        return _AUTHENTICATION if self.name else ""


_LEGACY = _Mode("")


def wanted_user(headers: RequestHeaders) -> User | None:
    """Whom the request wants to act for, None where it does not.

    Raises:
        StatusError: 400 for parts of an identity without a user name.
    """
    if not any(header[:12].lower() == "impersonate-" for header in headers):
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
    text = f"requested {shown} without impersonating a user name"
    raise StatusError(text, code=400, reason="BadRequest")


def acting_for(wanted: User, user: User, request: Attributes, authorizer: Authorizer) -> User:
    """The user for whom the request is carried out.

    Args:
        wanted: whom the headers name.
        user: who sent them.
        request: what the request wants to do.
        authorizer: knows what `user` may do.

    Raises:
        StatusError: 403.
    """
    first: StatusError | None = None
    for mode in _modes(wanted, user):
        error = _refusal_of(mode, wanted, user, request, authorizer)
        if error is None:
            return _completed(wanted)
        first = first or error
    if first is None:
        raise AssertionError("the legacy mode always applies")
    raise first


def _modes(wanted: User, user: User) -> Iterator[_Mode]:
    is_bare = not (wanted.groups or wanted.uid or wanted.extra)
    account, is_node = users.parse_account_name(wanted.name), _node_of(wanted.name) != ""
    if is_node and is_bare:
        if users.parse_account_name(user.name) and _node_of(wanted.name) in user.extra.get(_NODE_KEY, ()):
            yield _Mode("associated-node")
        yield _Mode("arbitrary-node")
    elif account and is_bare:
        yield _Mode("serviceaccount")
    elif not (is_node or account):
        yield _Mode("user-info")
    yield _LEGACY


def _refusal_of(
    mode: _Mode, wanted: User, user: User, request: Attributes, authorizer: Authorizer
) -> StatusError | None:
    needed = list(_identity(mode, wanted))
    if mode.name:
        needed.insert(0, replace(request, verb=f"impersonate-on:{mode.name}:{request.verb}"))
    for attributes in needed:
        decision = authorizer.decide(user, attributes)
        if not decision.allowed:
            return refusal(user, attributes, decision.reason)
        if mode.name and (attributes.resource, attributes.name) == ("groups", users.MASTERS):
            why = f"impersonating the {users.MASTERS} group is not allowed"
            return refusal(user, attributes, why)
    return None


def _identity(mode: _Mode, wanted: User) -> Iterator[Attributes]:
    """What must be allowed on the parts of the wanted identity."""
    account, node = users.parse_account_name(wanted.name), _node_of(wanted.name)
    part = Attributes(mode.verb, group=mode.group)
    if account:
        yield replace(part, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif node and mode.name:
        yield replace(part, resource="nodes", name="*" if mode.name == "associated-node" else node)
    else:
        yield replace(part, resource="users", name=wanted.name)
    for group in wanted.groups:
        yield replace(part, resource="groups", name=group)
    part = Attributes(mode.verb, group=_AUTHENTICATION)
    if wanted.uid:
        yield replace(part, resource="uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(part, resource="userextras", subresource=key, name=value)


def _completed(wanted: User) -> User:
    """The wanted user with the groups that everyone of that kind has."""
    if wanted.name == users.ANONYMOUS_NAME:
        groups = [group for group in wanted.groups if group != users.UNAUTHENTICATED]
        return replace(wanted, groups=(*groups, users.UNAUTHENTICATED))
    account = users.parse_account_name(wanted.name)
    if account and not wanted.groups:
        return replace(wanted, groups=users.account_groups(account[0]))
    return wanted


def _node_of(name: str) -> str:
    return name.removeprefix(users.NODE_PREFIX) if name.startswith(users.NODE_PREFIX) else ""


def _go_texts(texts: Sequence[str]) -> str:
    quoted = ", ".join(f'"{text}"' for text in texts)
    return f"[]string{{{quoted}}}" if texts else "[]string(nil)"


def _go_extra(extra: Mapping[str, Sequence[str]]) -> str:
    pairs = ", ".join(f'"{key}":{_go_texts(extra[key])}' for key in sorted(extra))
    return f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
