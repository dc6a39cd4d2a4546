"""Bearer tokens of browsers, which can give a WebSocket no headers but its sub-protocols.

Called by `auth_filter` where a request has no `Authorization`.

Source: the API server's WebSocket authenticator: `base64url.bearer.authorization.k8s.io.TOKEN` beside another one.
"""

import base64
import binascii
from typing import Final

from aiohttp import web

from podscaler.controlplane.apiserver.http import websockets

PREFIX: Final = "base64url.bearer.authorization.k8s.io."


def authorization(request: web.BaseRequest) -> str:
    """What stands for the `Authorization` header, empty where there is none, or none that can be read."""
    if not websockets.is_websocket(request):
        return ""
    offered = websockets.offered_protocols(request)
    tokens = [name.removeprefix(PREFIX) for name in offered if name.startswith(PREFIX)]
    if len(tokens) != 1 or len(offered) == 1:
        return ""
    try:
        token = base64.urlsafe_b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""
    return f"Bearer {token}"
