"""For whom another API server does something: the headers that tell it, and those that must not reach it.

Called for every request that is sent there. What clients send of the sort is dropped, so that nobody can claim to be
somebody else.

Source: the documentation of the aggregation layer (authenticating proxy); RFC 9110 7.6.1 (headers of a connection).
"""

from urllib.parse import quote

from multidict import CIMultiDict, CIMultiDictProxy

from podscaler.controlplane.registry.users import MASTERS, User

USER_HEADER = "X-Remote-User"
UID_HEADER = "X-Remote-Uid"
GROUP_HEADER = "X-Remote-Group"
EXTRA_PREFIX = "X-Remote-Extra-"

AGGREGATOR = User("system:kube-aggregator", (MASTERS,), is_known=False)
"""Who checks whether servers are there, and asks them what they serve."""
DISCOVERER = User("system:kube-aggregator", is_known=False)
DOCUMENTER = User("system:aggregator", is_known=False)
"""Who reads what they serve where that is not told all at once, and their OpenAPI documents."""

_NAME_SAFE = "!#$&'*+-.^_`|~"
_CONNECTION = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS = frozenset(
    {"authorization", "content-length", "expect", "host", "x-remote-group", "x-remote-uid", "x-remote-user"}
)
_OUR_PREFIXES = ("impersonate-", "sec-websocket-", "x-forwarded-", "x-remote-extra-")


def headers_of(user: User) -> CIMultiDict[str]:
    """The headers that say for whom a request is sent."""
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
    """The headers of a request that go on to another server."""
    kept = _kept(headers)
    for name in set(kept):
        if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
            kept.popall(name, None)
    return kept


def passed_back(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of another server's answer that go back to the client."""
    return _kept(headers)


def _kept(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """All headers but those that are about the connection."""
    named = ",".join(headers.getall("Connection", ())).lower().split(",")
    dropped = _CONNECTION.union(name.strip() for name in named)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
