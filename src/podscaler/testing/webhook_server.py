"""A fake webhook (HTTPS on a loopback port) with scripted responses, for tests of admission and of conversion.

It runs in the test's event loop and records the AdmissionReviews and ConversionReviews that it gets.
"""

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from podscaler.base import http_server
from podscaler.testing import extension_server

Object = dict[str, Any]
Respond = Callable[[Object], Object]
"""Makes the `response` of a review, to which the uid is added, from its `request`."""
Rewrite = Callable[[Object], Object | bytes]
"""Makes what is sent from the review with the response: another review, or raw bytes."""

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


def converted(request: Object, convert: Callable[[Object, str], None]) -> Object:
    """The response to a ConversionReview.

    Args:
        request: its request.
        convert: converts an object, in place, to an apiVersion, which is set afterwards.
    """
    objects = msgspec.json.decode(msgspec.json.encode(request["objects"]))
    for obj in objects:
        convert(obj, request["desiredAPIVersion"])
        obj["apiVersion"] = request["desiredAPIVersion"]
    return {"convertedObjects": objects, "result": {"status": "Success"}}


@dataclass
class WebhookServer:
    """A running webhook; tests set its attributes to script the responses.

    Attributes:
        authority: the PEM of its self-signed certificate, which is the caBundle, too.
        port: the port at which it listens.
        respond: makes the responses.
        rewrite: changes the responses.
        status: the HTTP status of the responses.
        delay: called and awaited before each response.
        reviews: all received reviews, in order.
    """

    authority: bytes
    port: int = 0
    respond: Respond = allow
    rewrite: Rewrite = lambda review: review
    status: int = 200
    delay: Callable[[], Awaitable[object]] | None = None
    reviews: list[Object] = field(default_factory=list)

    @property
    def requests(self) -> list[Object]:
        """The requests of all reviews, in order."""
        return [review["request"] for review in self.reviews]

    def client_config(self) -> Object:
        """The clientConfig of a webhook at this server."""
        bundle = base64.b64encode(self.authority).decode()
        return {"url": f"https://{HOST}:{self.port}/review", "caBundle": bundle}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The HTTP response to a review."""
        review = msgspec.json.decode(await request.content.read())
        self.reviews.append(review)
        if self.delay is not None:
            await self.delay()
        response = {"uid": review["request"]["uid"], **self.respond(review["request"])}
        rewritten = self.rewrite({**review, "request": None, "response": response})
        body = rewritten if isinstance(rewritten, bytes) else msgspec.json.encode(rewritten)
        return web.Response(body=body, status=self.status, content_type="application/json")


@asynccontextmanager
async def serve_webhook(directory: Path, *names: str) -> AsyncIterator[WebhookServer]:
    """Run a webhook whose certificate, a file in `directory`, is for 127.0.0.1 and the host names `names`."""
    file = directory / "webhook.pem"
    server = WebhookServer(extension_server.write_certificate(file, HOST, *names))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    runner = web.ServerRunner(http_server.Server(server.handle), shutdown_timeout=STOP_TIMEOUT_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
