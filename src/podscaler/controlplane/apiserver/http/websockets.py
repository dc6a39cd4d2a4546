"""WebSockets: who asks for one, which sub-protocol is spoken, and opening it.

Called by the handlers of streams (`pod_sessions`, `pod_ports`, `pod_logs`).

Source: RFC 6455; the API server's and the kubelet's choice of sub-protocols: the first of the client's that is served.
"""

from collections.abc import Collection

from aiohttp import hdrs, web

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors

MESSAGE_MAX_BYTES = 32 << 20
CLOSE_WITHIN_S = 2.0


def is_upgrade(request: web.BaseRequest) -> bool:
    """Whether the client wants another protocol than HTTP, whichever."""
    tokens = ",".join(request.headers.getall(hdrs.CONNECTION, ())).lower().split(",")
    return any("upgrade" in token for token in tokens)


def is_websocket(request: web.BaseRequest) -> bool:
    """Whether the client wants a WebSocket."""
    return is_upgrade(request) and request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def offered_protocols(request: web.BaseRequest) -> list[str]:
    """The sub-protocols that the client speaks, preferred first; may be empty."""
    header = ",".join(request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ()))
    return [name for part in header.split(",") if (name := part.strip())]


def choose_protocol(request: web.BaseRequest, served: Collection[str]) -> str:
    """The sub-protocol to speak; empty where the client names none and `served` has the empty one.

    Raises:
        StatusError: 403 where the two have none in common.
    """
    offered = offered_protocols(request) or [""]
    for name in offered:
        if name in served:
            return name
    shown = " ".join(sorted(name for name in served if name))
    text = f"requested protocol(s) are not supported: [{' '.join(offered)}]; supports [{shown}]"
    raise StatusError(text, code=403, reason="Forbidden")


async def open_socket(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """The open WebSocket.

    Args:
        protocol: the sub-protocol that was chosen, empty for none.

    Raises:
        StatusError: 400 for a handshake that is none, 405 for one that is no GET.
    """
    if request.method != hdrs.METH_GET:
        raise StatusError("bad method", code=405, reason="MethodNotAllowed")
    socket = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (),
        compress=False,
        max_msg_size=MESSAGE_MAX_BYTES,
        timeout=CLOSE_WITHIN_S,
    )
    try:
        await socket.prepare(request)
    except web.HTTPException as error:
        raise http_errors.bad_request(error.text or error.reason) from None
    return socket
