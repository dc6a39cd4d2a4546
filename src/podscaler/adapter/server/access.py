"""Authenticates and authorizes requests of the adapter, as extension API servers do.

Called by `server.app` for each request. The API server's front proxy (headers with the user) and client certificates
are tried first, then tokens; a request without credentials has the user system:anonymous. Health checks need no
permission.

Source: k8s.io/apiserver's delegated authentication and authorization.
"""

from typing import Protocol

from aiohttp import web

from podscaler.adapter.server.request_info import RequestInfo
from podscaler.kube.serving.delegated_access import UNAUTHORIZED, AccessError, DelegatedAccess
from podscaler.kube.serving.front_proxy import FrontProxyAuthentication

ALWAYS_ALLOWED = frozenset({"/healthz", "/livez", "/readyz"})


class RequestAccess(Protocol):
    """Authenticates and authorizes requests."""

    async def check(self, request: web.BaseRequest, request_info: RequestInfo) -> AccessError | None:
        """The error of a request; None if it is allowed."""
        ...


class ExtensionAccess:
    """Authenticates and authorizes requests as an extension API server does; a RequestAccess.

    Args:
        certificates: authenticates by client certificates and the front proxy's headers.
        tokens: authenticates by bearer tokens, which the API server reviews.
        permissions: authorizes users, by access reviews of the API server.
    """

    def __init__(
        self, certificates: FrontProxyAuthentication, tokens: DelegatedAccess, permissions: DelegatedAccess
    ) -> None:
        self._certificates = certificates
        self._tokens = tokens
        self._permissions = permissions

    async def check(self, request: web.BaseRequest, request_info: RequestInfo) -> AccessError | None:
        """As in RequestAccess."""
        if request_info.attributes.path in ALWAYS_ALLOWED:
            return None
        user = self._certificates.find_user(_peer_certificate(request), request.headers)
        if user is None:
            reviewed = await self._tokens.authenticate(request.headers.get("Authorization", ""), request_info.path)
            if reviewed is None or isinstance(reviewed, AccessError):
                return reviewed or UNAUTHORIZED
            user = reviewed
        return await self._permissions.authorize(user, request_info.attributes)


def _peer_certificate(request: web.BaseRequest) -> bytes | None:
    """The client certificate of the connection in DER; None without one."""
    connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
    certificate: bytes | None = connection.getpeercert(binary_form=True) if connection is not None else None
    return certificate
