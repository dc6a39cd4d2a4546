"""Serves /metrics, /healthz and /readyz of the controller over HTTP.

`podscaler controller` and `podscaler up` start it on --metrics-bind-address. Its responses contain no secrets. With
delegated access, /metrics authenticates and authorizes the caller; the health endpoints never do. A
further endpoint: a method, and its path in `Endpoints._respond`.
"""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from podscaler.base import http_server
from podscaler.base.errors import UsageError
from podscaler.kube.serving.delegated_access import AccessError

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Figures(Protocol):
    """Renders /metrics; a controller's Telemetry does."""

    def render(self) -> bytes:
        """The metrics in Prometheus' text format; called in a thread."""
        ...


class Access(Protocol):
    """Authenticates and authorizes requests of /metrics; DelegatedAccess does."""

    async def check(self, authorization: str, verb: str, path: str) -> AccessError | None:
        """The error of a request; None if it is allowed."""
        ...


class Endpoints:
    """Serves the endpoints from `start` to `stop`.

    Args:
        figures: renders /metrics.
        unready: returns the reasons why the controller is not ready; empty when it is.
        fault: returns the reason why /healthz fails; empty if it does not.
        access: authorizes requests of /metrics; None if all are allowed.
    """

    def __init__(
        self,
        figures: Figures,
        unready: Callable[[], list[str]],
        fault: Callable[[], str] | None = None,
        access: Access | None = None,
    ) -> None:
        self._figures = figures
        self._unready = unready
        self._fault = fault
        self._access = access
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> str:
        """Listen, over HTTPS with `tls`; returns the bound address `host:port`. The port 0 takes a free port.

        Raises:
            UsageError: the address cannot be bound.
        """
        self._runner = web.ServerRunner(http_server.Server(self._respond))
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=tls).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(f"--metrics-bind-address {host}:{port}: {error.strerror or error}") from error
        bound = self._runner.addresses[0]
        return f"{host}:{bound[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        """The response to a request: that of the path's handler, 404 for another path, 405 unless it is GET or HEAD."""
        handlers = {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}
        handler = handlers.get(request.path)
        if handler is None:
            return web.Response(text="404: Not Found", status=404)
        if request.method not in ("GET", "HEAD"):
            return web.Response(text="405: Method Not Allowed", status=405, headers={"Allow": "GET,HEAD"})
        return await handler(request)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        """The metrics in Prometheus' text format, or 401 or 403 where access is refused."""
        if self._access is not None:
            authorization = request.headers.get("Authorization", "")
            error = await self._access.check(authorization, request.method.lower(), request.path)
            if error is not None:
                return _error_response(error)
        body = await asyncio.to_thread(self._figures.render)
        return web.Response(body=body, headers={"Content-Type": METRICS_TYPE})

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        """200, or 500 with the reason for which the process should be restarted."""
        fault = self._fault() if self._fault is not None else ""
        if fault:
            return web.Response(text=f"[-]leaderElection failed: {fault}\nhealthz check failed\n", status=500)
        return web.Response(text="ok")

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        reasons = self._unready()
        return web.Response(text="".join(f"{line}\n" for line in reasons) or "ok", status=503 if reasons else 200)


def _error_response(error: AccessError) -> web.Response:
    """The error as a Status object, as kube-apiserver responds."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    status |= {"message": error.message, "reason": error.reason}
    if error.code == 403:
        status["details"] = {}  # as kube-apiserver's responsewriters.Forbidden
    body = json.dumps(status | {"code": error.code}, indent=2)
    headers = {"X-Content-Type-Options": "nosniff"}
    return web.Response(text=f"{body}\n", status=error.code, content_type="application/json", headers=headers)
