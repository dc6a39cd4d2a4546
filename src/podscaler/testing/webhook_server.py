"""A fake webhook (HTTPS on a loopback port) with scripted responses, for tests of admission.

It runs in the test's event loop and records the AdmissionReviews that it gets.
"""

import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from podscaler.testing import extension_server

Object = dict[str, Any]
Respond = Callable[[Object], Object]
"""From the request of an AdmissionReview to the response without uid."""

HOST = "127.0.0.1"
STOP_TIMEOUT_S = 0.1


def allow(request: Object) -> Object:
    """Allow everything."""
    del request
    return {"allowed": True}


def patch_response(*operations: Object) -> Object:
    """A response with a JSON patch."""
    patch = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


@dataclass
class WebhookServer:
    """A webhook.

    Attributes:
        authority: the PEM of its certificate.
        port: the port at which it listens.
        respond: makes the responses.
        requests: the requests of all AdmissionReviews, in order.
    """

    authority: bytes
    port: int = 0
    respond: Respond = allow
    requests: list[Object] = field(default_factory=list)

    def client_config(self) -> Object:
        """The clientConfig of a webhook at this server."""
        bundle = base64.b64encode(self.authority).decode()
        return {"url": f"https://{HOST}:{self.port}/review", "caBundle": bundle}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The HTTP response to an AdmissionReview."""
        review = msgspec.json.decode(await request.content.read())
        self.requests.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.respond(review["request"])}
        return web.json_response({**review, "request": None, "response": response})


@asynccontextmanager
async def serve_webhook(directory: Path, *names: str) -> AsyncIterator[WebhookServer]:
    """Run a webhook whose certificate, a file in `directory`, is for 127.0.0.1 and `names`."""
    file = directory / "webhook.pem"
    server = WebhookServer(extension_server.write_certificate(file, HOST, *names))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=STOP_TIMEOUT_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
