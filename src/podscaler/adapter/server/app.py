"""Serves the adapter over HTTP: authorization, discovery, the metrics APIs, health and its own metrics.

`adapter.assembly` makes it. Every request, of probes too, passes `access`; then come health and /metrics, discovery
documents, and the APIs by their groups. An error of any of them is a Status. A bug in a request is logged with its
traceback and is a 500 for this request alone. A new path that is not of an API group: an `if` of `_respond_authorized`.
"""

import logging
import ssl
from collections.abc import Callable, Sequence

from aiohttp import web

from podscaler.adapter.prometheus.telemetry import AdapterTelemetry
from podscaler.adapter.server import discovery, request_info, responses
from podscaler.adapter.server.access import RequestAccess
from podscaler.adapter.server.discovery import MetricsApi
from podscaler.adapter.server.request_info import RequestInfo
from podscaler.base import http_server
from podscaler.base.errors import StatusError, UsageError

log = logging.getLogger(__name__)

READ_METHODS = ("GET", "HEAD")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class AdapterServer:
    """The HTTPS server of one adapter with all its endpoints.

    Args:
        apis: the served groups.
        access: authenticates and authorizes requests.
        unready: returns the reasons why the adapter is not ready; empty when it is.
        telemetry: counts requests, and renders /metrics.

    Attributes:
        unready: as the argument.
    """

    def __init__(
        self,
        apis: Sequence[MetricsApi],
        access: RequestAccess,
        unready: Callable[[], list[str]],
        telemetry: AdapterTelemetry,
    ) -> None:
        self._apis = {api.group: api for api in apis}
        self._documents = discovery.documents(self._apis)
        self._access = access
        self.unready = unready
        self._telemetry = telemetry
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext) -> str:
        """Listen; the bound address. `port` 0 takes a free port.

        Raises:
            UsageError: the address cannot be bound.
        """
        self._runner = web.ServerRunner(http_server.Server(self._respond))
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=tls).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(f"--secure-port {port} of {host}: {error.strerror or error}") from error
        return f"{host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        """The response to a request, which is counted."""
        began_s = self._telemetry.now_s()
        response, group = await self._respond_or_error(request), ""
        segments = request.path.split("/", 3)  # not by RequestInfo: requests that it rejects are counted, too
        if len(segments) > 2 and segments[1] == "apis" and segments[2] in self._apis:
            group = segments[2]
        self._telemetry.count_request(group, response.status, began_s)
        return response

    async def _respond_or_error(self, request: web.BaseRequest) -> web.Response:
        """The response to a request; errors become a Status. Raises nothing but CancelledError."""
        try:
            info = request_info.parse(request.method, request.rel_url.raw_path, request.rel_url.raw_query_string)
            rejection = await self._access.check(request, info)
            if rejection is not None:
                return responses.of_access_error(rejection)
            return await self._respond_authorized(request, info)
        except StatusError as error:
            return responses.of_error(error)
        except Exception:
            log.exception("a request failed because of a bug")
            return responses.of_error(StatusError("the adapter failed; its log has the cause", code=500))

    async def _respond_authorized(self, request: web.BaseRequest, info: RequestInfo) -> web.Response:
        """The response to a request that is authorized. Raises StatusError."""
        if request.method not in READ_METHODS:
            raise StatusError(
                "the server does not allow this method on the requested resource",
                code=405,
                reason="MethodNotAllowed",
                details={},
            )
        if info.path in ("/healthz", "/livez"):
            return web.Response(text="ok")
        if info.path == "/readyz":
            reasons = self.unready()
            return web.Response(text="".join(f"{line}\n" for line in reasons) or "ok", status=503 if reasons else 200)
        if info.path == "/metrics":
            return web.Response(body=self._telemetry.render(), headers={"Content-Type": METRICS_TYPE})
        responses.check_accept(request.headers.get("Accept", ""))
        return responses.of_object(await self.object(info))

    async def object(self, info: RequestInfo) -> discovery.Object:
        """The object or document of a request that is authorized. Raises StatusError."""
        if info.is_resource_request:
            api = self._apis.get(info.attributes.group)
            if api is None or info.attributes.version not in api.versions:
                raise responses.no_such_path()
            return await api.respond(info)
        path = info.path.rstrip("/")
        if path in self._documents:
            return self._documents[path]
        group, _, version = path.removeprefix("/apis/").partition("/")
        api = self._apis.get(group) if path.startswith("/apis/") else None
        if api is None or version not in api.versions:
            raise responses.no_such_path()
        return discovery.resource_list(api, version)
