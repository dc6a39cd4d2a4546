"""Builds the headers of proxied requests: X-Remote-User and others name the user, client headers are filtered.

`remote_proxy`, `availability` and `remote_documents` call it for every request to another API server, `endpoint_proxy`
for requests to pods and kubelets, `proxied_response` for responses. X-Remote-*, Authorization and Impersonate-* headers
of clients are removed, so that a client cannot claim to be another user, and the other server gets no credentials; so
are those that the callers or the connection set anew. A new header to remove: add it to `_REMOVED_NAMES`.

Source: the documentation of the aggregation layer (authenticating proxy); RFC 9110 section 7.6.1 (Connection).
"""

from urllib.parse import quote

from multidict import CIMultiDict, CIMultiDictProxy

from podscaler.controlplane.registry.users import MASTERS, User

USER_HEADER = "X-Remote-User"
UID_HEADER = "X-Remote-Uid"
GROUP_HEADER = "X-Remote-Group"
EXTRA_PREFIX = "X-Remote-Extra-"

AGGREGATOR_USER = User("system:kube-aggregator", (MASTERS,), is_known=False)
"""The user of availability checks and of requests for aggregated discovery."""
DISCOVERY_USER = User("system:kube-aggregator", is_known=False)
"""The user of requests for the APIResourceList of one group and version."""
OPENAPI_USER = User("system:aggregator", is_known=False)
"""The user of requests for OpenAPI documents."""

_UNESCAPED_IN_NAMES = "!#$&'*+-.^_`|~"
"""The characters, besides letters and digits, that a header's name may have; others are percent-encoded."""
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}) | {
    f"proxy-{name}" for name in ("authenticate", "authorization", "connection")
}
_REMOVED_NAMES = frozenset({"authorization", "content-length", "expect", "host"}) | {
    name.lower() for name in (USER_HEADER, UID_HEADER, GROUP_HEADER)
}
_REMOVED_PREFIXES = ("impersonate-", "sec-websocket-", "x-forwarded-", "x-remote-extra-")


def user_headers(user: User) -> CIMultiDict[str]:
    """The headers that name `user`: X-Remote-User, -Uid, one X-Remote-Group for each group, X-Remote-Extra-KEY."""
    headers: CIMultiDict[str] = CIMultiDict({USER_HEADER: user.name})
    if user.uid:
        headers[UID_HEADER] = user.uid
    for group in user.all_groups:
        headers.add(GROUP_HEADER, group)
    for key, values in user.extra.items():
        for value in values:
            headers.add(EXTRA_PREFIX + quote(key, safe=_UNESCAPED_IN_NAMES), value)
    return headers


def request_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of a client's request that are sent on to the other server, without those of `user_headers`."""
    passed = _without_hop_by_hop(headers)
    for name in set(passed):
        if name.lower() in _REMOVED_NAMES or name.lower().startswith(_REMOVED_PREFIXES):
            passed.popall(name, None)
    return passed


def response_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of the other server's response that are sent back to the client."""
    return _without_hop_by_hop(headers)


def _without_hop_by_hop(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """All headers except the hop-by-hop ones and those that the header Connection names."""
    connection_options = ",".join(headers.getall("Connection", ())).lower().split(",")
    dropped = _HOP_BY_HOP.union(name.strip() for name in connection_options)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
