"""Upgrades requests to WebSockets: detects the request, chooses the sub-protocol, does the handshake.

The handlers of streams (`pod_sessions`, `pod_ports`, `pod_logs`) call it; `auth_filter` reads the sub-protocols, and
`endpoint_proxy` rejects upgrades.

Source: RFC 6455; kube-apiserver's and the kubelet's choice of sub-protocols: the first of the client's that is served.
"""

from collections.abc import Collection

from aiohttp import hdrs, web

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors

MESSAGE_MAX_BYTES = 32 << 20
"""The most bytes of a received message."""
CLOSE_TIMEOUT_S = 2.0
"""How long the server waits for the client's closing frame."""


def is_upgrade(request: web.BaseRequest) -> bool:
    """Whether the request asks to upgrade the connection, to any protocol; a part of the header counts, as upstream."""
    return any("upgrade" in header.lower() for header in request.headers.getall(hdrs.CONNECTION, ()))


def is_websocket(request: web.BaseRequest) -> bool:
    """Whether the request asks for a WebSocket."""
    return is_upgrade(request) and request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def offered_protocols(request: web.BaseRequest) -> list[str]:
    """The sub-protocols that the client offers, in its order of preference; may be empty."""
    header = ",".join(request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ()))
    return [name for part in header.split(",") if (name := part.strip())]


def choose_protocol(request: web.BaseRequest, served: Collection[str]) -> str:
    """The first offered sub-protocol that is in `served`; a client that offers none is taken to offer the empty name.

    Raises StatusError 403 without a common sub-protocol.
    """
    offered = offered_protocols(request) or [""]
    for name in offered:
        if name in served:
            return name
    served_text = " ".join(sorted(name for name in served if name))
    message = f"requested protocol(s) are not supported: [{' '.join(offered)}]; supports [{served_text}]"
    raise StatusError(message, code=403, reason="Forbidden")


async def open_socket(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """Accept the handshake; `protocol` is the chosen sub-protocol, empty for none.

    Raises StatusError 400 for an invalid handshake, 405 for another method than GET.
    """
    if request.method != hdrs.METH_GET:
        raise StatusError("bad method", code=405, reason="MethodNotAllowed")
    socket = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (),
        compress=False,
        max_msg_size=MESSAGE_MAX_BYTES,
        timeout=CLOSE_TIMEOUT_S,
    )
    try:
        await socket.prepare(request)
    except web.HTTPException as error:
        raise http_errors.bad_request(error.text or error.reason) from None
    return socket
