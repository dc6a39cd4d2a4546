"""The request headers of an authenticating proxy: sets those of the user, removes those that clients must not send.

Called for every request to another API server. Headers of this sort from clients are removed, so that a client cannot
claim to be another user.

Source: the documentation of the aggregation layer (authenticating proxy); RFC 9110 section 7.6.1 (Connection).
"""

from urllib.parse import quote

from multidict import CIMultiDict, CIMultiDictProxy

from podscaler.controlplane.registry.users import MASTERS, User

USER_HEADER = "X-Remote-User"
UID_HEADER = "X-Remote-Uid"
GROUP_HEADER = "X-Remote-Group"
EXTRA_PREFIX = "X-Remote-Extra-"

AGGREGATOR = User("system:kube-aggregator", (MASTERS,), is_known=False)
"""The user of availability checks and of aggregated discovery."""
DISCOVERER = User("system:kube-aggregator", is_known=False)
DOCUMENTER = User("system:aggregator", is_known=False)
"""The users of plain discovery, and of OpenAPI documents."""

_NAME_SAFE = "!#$&'*+-.^_`|~"
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}) | {
    f"proxy-{name}" for name in ("authenticate", "authorization", "connection")
}
_REPLACED = frozenset({"authorization", "content-length", "expect", "host"}) | {
    name.lower() for name in (USER_HEADER, UID_HEADER, GROUP_HEADER)
}
_REPLACED_PREFIXES = ("impersonate-", "sec-websocket-", "x-forwarded-", "x-remote-extra-")


def headers_of(user: User) -> CIMultiDict[str]:
    """The headers that name the user of a request."""
    found: CIMultiDict[str] = CIMultiDict({USER_HEADER: user.name})
    if user.uid:
        found[UID_HEADER] = user.uid
    for group in user.all_groups:
        found.add(GROUP_HEADER, group)
    for key, values in user.extra.items():
        for value in values:
            found.add(EXTRA_PREFIX + quote(key, safe=_NAME_SAFE), value)
    return found


def passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of a client's request that are sent to the other server."""
    kept = _kept(headers)
    for name in set(kept):
        if name.lower() in _REPLACED or name.lower().startswith(_REPLACED_PREFIXES):
            kept.popall(name, None)
    return kept


def passed_back(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of the other server's response that are sent to the client."""
    return _kept(headers)


def _kept(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """All headers except those of the connection."""
    named = ",".join(headers.getall("Connection", ())).lower().split(",")
    dropped = _HOP_BY_HOP.union(name.strip() for name in named)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
