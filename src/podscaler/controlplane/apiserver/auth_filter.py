"""Authenticates and authorizes requests: client certificates, bearer tokens, impersonation, RBAC.

`dispatch` calls, for every request, `authenticate`, `effective_user` and `authorize`. A client certificate takes
precedence over a token. Requests without credentials get 401, except for the `open_paths`. A new kind of credentials: a
step in `AuthFilter.authenticate`.

Source: X.509 client certificates (Kubernetes documentation, Authenticating); the API server's WebSocket authenticator.
"""

import base64
import binascii
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from podscaler.controlplane.apiserver.http import http_errors, websockets
from podscaler.controlplane.auth import impersonation
from podscaler.controlplane.auth.authenticator import Authenticator, user_of_certificate
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.registry import acting_user
from podscaler.controlplane.registry.users import ANONYMOUS, User

HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
"""The paths that `app` opens to requests without credentials, where that is configured."""
_CONNECT_SUBRESOURCES = frozenset({"pods/attach", "pods/exec", "pods/portforward"})
"""Subresources that are used by POST or by a WebSocket, whose handshake is a GET. A new one: a line here, too."""
_BEARER_PROTOCOL: Final = "base64url.bearer.authorization.k8s.io."
"""The prefix of a WebSocket sub-protocol that contains a bearer token."""


@dataclass(frozen=True, slots=True)
class AuthFilter:
    """Decides who sent a request and whether the user may make it.

    Attributes:
        authenticator: maps bearer tokens to users.
        authorizer: decides by RBAC.
        open_paths: paths of which requests without credentials are accepted, as those of the user system:anonymous.
    """

    authenticator: Authenticator
    authorizer: Authorizer
    open_paths: frozenset[str] = frozenset()

    def authenticate(self, request: web.BaseRequest, path: str) -> User:
        """The user who sent a request for a decoded path. Raises StatusError 401."""
        certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
        user = user_of_certificate(certificate)
        authorization = request.headers.get("Authorization") or _websocket_authorization(request)
        user = user or self.authenticator.user_of_header(authorization)
        if user is None and path in self.open_paths and not authorization:
            user = ANONYMOUS
        if user is None:
            raise http_errors.unauthorized()
        return user

    def effective_user(self, user: User, request: web.BaseRequest, attributes: Attributes) -> User:
        """The user with whose rights the request is carried out: `user`, or the one that it impersonates.

        `attributes` are those of the request. Raises StatusError 400 for impersonation without a user name, 403.
        """
        requested_user = impersonation.requested_user(request.headers)
        if requested_user is None:
            return user
        return impersonation.impersonate(requested_user, user, attributes, self.authorizer)

    def authorize(self, user: User, attributes: Attributes) -> str:
        """Authorize the request and make `user` the acting one of this task (`registry.acting_user`).

        Returns the authorizer's reason, for the audit event.

        Raises StatusError 403.
        """
        decision = self.authorizer.authorize(user, attributes)
        if attributes.verb == "get" and f"{attributes.resource}/{attributes.subresource}" in _CONNECT_SUBRESOURCES:
            self.authorizer.authorize(user, replace(attributes, verb="create"))  # no fewer rights than a POST
        acting_user.set_user(user)
        return decision.reason


def _websocket_authorization(request: web.BaseRequest) -> str:
    """The `Authorization` header that a browser's WebSocket sends as a sub-protocol, beside another one; else empty."""
    if not websockets.is_websocket(request):
        return ""
    offered = websockets.offered_protocols(request)
    encoded_tokens = [name.removeprefix(_BEARER_PROTOCOL) for name in offered if name.startswith(_BEARER_PROTOCOL)]
    if len(encoded_tokens) != 1 or len(offered) == 1:  # the server may not choose the token as its sub-protocol
        return ""
    encoded_token = encoded_tokens[0]
    padding = "=" * (-len(encoded_token) % 4)
    try:
        token = base64.urlsafe_b64decode(encoded_token + padding).decode()
    except (binascii.Error, ValueError):
        return ""
    return f"Bearer {token}"
