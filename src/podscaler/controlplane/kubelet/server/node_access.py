"""Authenticates requests to the node's endpoints, and authorizes them as requests to subresources of the Node.

`node_server` calls `NodeAccess.rejection` for each request. Rules:

1. The user is that of a client certificate of the cluster's authority, else that of a bearer token (static, or of a
   service account), else system:anonymous.
2. SUBRESOURCES has the subresources of nodes for a path and all paths below; every other path needs nodes/proxy. The
   verb is that of the method; other methods, such as HEAD, have none, as in kubelet. RBAC decides. A new path with a
   subresource of its own is an entry there.

Source: Kubelet authentication/authorization (Kubernetes documentation): `--anonymous-auth`,
`--authentication-token-webhook`, `--authorization-mode=Webhook`.

Differs: a kubelet sends a TokenReview and a SubjectAccessReview; the authenticator and the authorizer of the API server
in the same process give the same results.
"""

from typing import Final, NamedTuple

from aiohttp import web

from podscaler.controlplane.auth.authenticator import Authenticator, user_of_certificate
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.registry.users import ANONYMOUS, User

SUBRESOURCES: Final = {
    "/stats": ("stats",),
    "/metrics": ("metrics",),
    "/logs": ("log",),
    "/checkpoint": ("checkpoint",),
    "/statusz": ("statusz",),
    "/flagz": ("configz",),  # as kubelet
    "/allocatedPods": ("pods", "proxy"),
    "/pods": ("pods", "proxy"),
    "/runningpods": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
}
"""First part of the path -> subresources of nodes; the permission for one of them suffices."""
PROXY: Final = ("proxy",)
"""The subresources of every other path."""
VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
"""The verb of RBAC for an HTTP method."""


class AccessRejection(NamedTuple):
    """The status and the text of the response to a request that is not allowed."""

    status: int
    text: str


class NodeAccess:
    """Authenticates and authorizes the requests to the endpoints of one node.

    Args:
        authenticator: maps bearer tokens to users.
        authorizer: decides whether a user may do what the attributes of a request say.
    """

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def rejection(self, request: web.BaseRequest, node_name: str) -> AccessRejection | None:
        """The response to a request that is not allowed: 401 or 403; None for a request that is allowed.

        Args:
            node_name: the name of the Node whose endpoint it is.
        """
        user = self._find_user(request)
        if user is None:
            return AccessRejection(401, "Unauthorized")
        verb, subresources = VERBS.get(request.method, ""), subresources_of(request.path)
        for subresource in subresources:
            attributes = Attributes(verb, request.path, resource="nodes", subresource=subresource, name=node_name)
            if self._authorizer.decide(user, attributes).allowed:
                return None
        names = " ".join(subresources)
        message = f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{names}])\n"
        return AccessRejection(403, message)

    def _find_user(self, request: web.BaseRequest) -> User | None:
        """The user of a request; None for a token that is not accepted."""
        certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if (user := user_of_certificate(certificate)) is not None:
            return user
        authorization = request.headers.get("Authorization", "")
        return self._authenticator.user_of_header(authorization) if authorization else ANONYMOUS


def subresources_of(path: str) -> tuple[str, ...]:
    """The subresources of nodes that a path belongs to, the most specific first."""
    first_part = "/" + path.lstrip("/").partition("/")[0]
    is_normal = path.startswith(first_part)  # not so with several slashes, which no page has
    return SUBRESOURCES.get(first_part, PROXY) if is_normal else PROXY
