"""Who comes in: from a request to its user, and whether that may do what it wants.

Called by `dispatch` for every request. A client certificate counts before a token, as upstream has it. Nobody without
either comes in, except to the paths that the user of `up` opened to everyone.
"""

from dataclasses import dataclass, replace

from aiohttp import web

from podscaler.controlplane.apiserver.http import http_errors, websocket_tokens
from podscaler.controlplane.auth import client_certificates, impersonation
from podscaler.controlplane.auth.rules import Attributes, Authorizer
from podscaler.controlplane.auth.tokens import Authenticator
from podscaler.controlplane.registry import acting
from podscaler.controlplane.registry.users import ANONYMOUS, User

HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
_CONNECTED = frozenset({"pods/attach", "pods/exec", "pods/portforward"})


@dataclass(frozen=True, slots=True)
class Doors:
    """See the module.

    Attributes:
        open_paths: who comes to these without credentials is system:anonymous.
    """

    authenticator: Authenticator
    authorizer: Authorizer
    open_paths: frozenset[str] = frozenset()

    def identify(self, request: web.BaseRequest, path: str) -> User:
        """Who sent a request.

        Raises:
            StatusError: 401.
        """
        certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
        user = client_certificates.user_of(certificate) if certificate else None
        authorization = request.headers.get("Authorization") or websocket_tokens.authorization(request)
        user = user or self.authenticator.user_of(authorization)
        if user is None and path in self.open_paths and not authorization:
            user = ANONYMOUS
        if user is None:
            raise http_errors.unauthorized()
        return user

    def acting_for(self, user: User, request: web.BaseRequest, wanted: Attributes) -> User:
        """For whom the request is carried out: its user, or whom that may act for.

        Raises:
            StatusError: 400 for impersonation of nobody, 403.
        """
        other = impersonation.wanted_user(request.headers)
        return user if other is None else impersonation.acting_for(other, user, wanted, self.authorizer)

    def admit(self, user: User, wanted: Attributes) -> str:
        """Let the request in, which is carried out for `user`; returns why it may be.

        Raises:
            StatusError: 403.
        """
        decision = self.authorizer.authorize(user, wanted)
        if wanted.verb == "get" and f"{wanted.resource}/{wanted.subresource}" in _CONNECTED:
            self.authorizer.authorize(user, replace(wanted, verb="create"))  # by WebSocket as by POST
        acting.begin(user)
        return decision.reason
