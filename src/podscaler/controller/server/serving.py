"""The controller's own small HTTP server: /metrics, /healthz and /readyz.

`podscaler controller` and `podscaler up` start it on --metrics-bind-address. It tells nothing secret, and reads nothing
from requests but, where access is asked about, who reads /metrics; whoever probes for health is never asked.
"""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from podscaler.base import http_server
from podscaler.base.errors import UsageError
from podscaler.controller.server.delegated_access import Refusal

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Figures(Protocol):
    """What /metrics shows: a controller's Telemetry, for one."""

    def render(self) -> bytes:
        """All of it in Prometheus' text format; is called in a thread."""
        ...


class Access(Protocol):
    """Who may read /metrics."""

    async def refusal(self, authorization: str, verb: str, path: str) -> Refusal | None:
        """Why a request is refused; None where it is allowed."""
        ...


class Endpoints:
    """The server.

    Args:
        figures: what /metrics shows.
        unready: the reasons why the controller is not ready; empty when it is.
        fault: what is wrong with its leader election; empty where nothing is.
        access: who may read /metrics; None: everybody.
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
        """Listen, over HTTPS with `tls`; the address (with the port that was free, if `port` is 0).

        Raises:
            UsageError: the address cannot be had.
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
        pages = {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}
        page = pages.get(request.path)
        if page is None:
            return web.Response(text="404: Not Found", status=404)
        if request.method not in ("GET", "HEAD"):
            return web.Response(text="405: Method Not Allowed", status=405, headers={"Allow": "GET,HEAD"})
        return await page(request)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        if self._access is not None:
            given = request.headers.get("Authorization", "")
            refusal = await self._access.refusal(given, request.method.lower(), request.path)
            if refusal is not None:
                return _refused(refusal)
        body = await asyncio.to_thread(self._figures.render)
        return web.Response(body=body, headers={"Content-Type": METRICS_TYPE})

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        fault = self._fault() if self._fault is not None else ""
        if fault:
            return web.Response(text=f"[-]leaderElection failed: {fault}\nhealthz check failed\n", status=500)
        return web.Response(text="ok")

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        reasons = self._unready()
        return web.Response(text="".join(f"{line}\n" for line in reasons) or "ok", status=503 if reasons else 200)


def _refused(refusal: Refusal) -> web.Response:
    """A Status, as API servers refuse."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    status |= {"message": refusal.message, "reason": refusal.reason}
    if refusal.code == 403:
        status["details"] = {}
    body = json.dumps(status | {"code": refusal.code}, indent=2)
    headers = {"X-Content-Type-Options": "nosniff"}
    return web.Response(text=f"{body}\n", status=refusal.code, content_type="application/json", headers=headers)
