"""Serves the dashboard over HTTP: login, the JSON routes, server-sent events, and the page's files.

`podscaler.cli.dashboard.dashboard_run` and `podscaler.cli.up.up_dashboard` start one. The routes and their JSON are in
docs/dashboard.md; a new route is a case in `_respond_for_server` or `_respond_for_autoscaler`. Every response has the
headers of `podscaler.dashboard.security`; errors are `{"error": "a sentence"}`.
"""

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from podscaler.base import http_server
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.dashboard import security, spec_writes, viewers
from podscaler.dashboard.event_stream import OVERLAP_MS, EventStream, parse_position
from podscaler.dashboard.report_folder import ReportFolder
from podscaler.dashboard.security import OwnAddress
from podscaler.dashboard.sessions import SESSION_IDLE_S, STREAMS_MAX, Session, Sessions
from podscaler.dashboard.spec_writes import SpecChange
from podscaler.dashboard.static_files import StaticFiles
from podscaler.dashboard.viewers import LocalViewer, OpenViewer
from podscaler.kube.transport.transport import TransportError
from podscaler.observe.live_cluster import LiveCluster
from podscaler.observe.views import AutoscalerList

log = logging.getLogger(__name__)

BODY_MAX_BYTES = 64 * 1024
RETRY_MS = 5000
"""When a page may repeat a request that failed for a reason that may pass."""
RETRY_LISTING_MS = 1000
"""When a page may repeat the request of the list, while the server has not read the cluster yet."""
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
FOLDERS: Mapping[str, str] = {"": "dashboard/static", "charts/": "simulation/report/static"}
"""The page, and the plots that it shares with reports."""
NO_ROUTE = "there is no such address"
LOGIN_HINT = "open a login link of this server: it prints one where it was started, and a new one after each login"
_LOGIN_DECODER = msgspec.json.Decoder(dict[str, str])


class _WhatIfBody(msgspec.Struct, rename="camel"):
    """The body of a what-if.

    Attributes:
        set: the assignments, as `podscaler explain --what-if` takes them.
        from_, to: the recorded time that is decided again, in ms; None: the default of `LiveCluster.time_range`.
    """

    set: list[str]
    from_: int | None = msgspec.field(name="from", default=None)
    to: int | None = None


_WHAT_IF_DECODER = msgspec.json.Decoder(_WhatIfBody)
_SPEC_CHANGE_DECODER = msgspec.json.Decoder(SpecChange)


@dataclass(frozen=True, slots=True)
class DashboardOptions:
    """How the dashboard is served.

    Attributes:
        host, port: the address to listen on; port 0: any free one.
        hosts: further host names by which browsers may reach it.
        tls: the TLS context; None: plain HTTP.
        reports: the folder of reports; None if there are none.
        open_viewer: makes viewers of bearer tokens; None if only login links begin sessions.
        allows_writes: whether viewers may write specs, with the permissions that they have.
        on_login: called with a new login link after each login with one; None if there is one link only.
        folders: the folders of the page's files in the package podscaler, by the path below /static.
    """

    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()
    tls: ssl.SSLContext | None = None
    reports: Path | None = None
    open_viewer: OpenViewer | None = None
    allows_writes: bool = False
    on_login: Callable[[str], None] | None = None
    folders: Mapping[str, str] = field(default_factory=lambda: FOLDERS)


class RejectedRequest(Exception):
    """A request that gets an error response: the HTTP status, the sentence, and further members of the body."""

    def __init__(self, status: int, error: str, **further_members: Any) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error} | further_members


class DashboardServer:
    """Serves the dashboard from `start` to `stop`.

    Args:
        live_cluster: the autoscalers and their decisions, as the server reads them.
        clock: the times of sessions and streams.
        options: how it is served.

    Attributes:
        url: the address without a path, after `start`.
    """

    def __init__(self, live_cluster: LiveCluster, clock: Clock, options: DashboardOptions) -> None:
        self._live = live_cluster
        self._clock = clock
        self._options = options
        self._sessions = Sessions(clock)
        self._reports = ReportFolder(options.reports)
        self._boot_id = secrets.token_hex(4)
        self._runner: web.ServerRunner | None = None
        self._address = OwnAddress("http", (), 0)
        self._cookie_name = ""
        self._files: StaticFiles | None = None
        self._stopping = asyncio.Event()
        self.url = ""

    async def start(self) -> None:
        """Listen. Raises UsageError if the address cannot be used."""
        options = self._options
        self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, options.host, options.port, ssl_context=options.tls).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(
                f"the dashboard cannot listen on {options.host}:{options.port}: {error.strerror or error}"
            ) from None
        port = self._runner.addresses[0][1]
        scheme = "https" if options.tls is not None else "http"
        own_host = f"[{options.host}]" if ":" in options.host else options.host
        self._address = OwnAddress(scheme, (*LOOPBACK_HOSTS, own_host, *options.hosts), port)
        self._cookie_name = f"__Host-podscaler-{port}" if options.tls is not None else f"podscaler-{port}"
        self.url = f"{scheme}://{(options.hosts or (own_host,))[0]}:{port}"

    async def stop(self) -> None:
        """Stop listening, and end all sessions and streams."""
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
        await self._sessions.close()

    def login_link(self) -> str:
        """A new link that begins a session once. The token is in its fragment, which browsers do not send."""
        return f"{self.url}/#token={self._sessions.new_login_token()}"

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response to a request; rejections, API errors and UsageErrors become JSON."""
        try:
            if error := self._address.request_error(request):
                raise RejectedRequest(403, error)
            return await self._route(request)
        except RejectedRequest as rejection:
            return self._json_response(rejection.body, rejection.status)
        except TransportError as error:
            return self._json_response({"error": f"the API server does not respond: {error}", "retryMs": RETRY_MS}, 503)
        except StatusError as error:
            return self._json_response(*_status_body(error))
        except UsageError as error:
            return self._json_response({"error": str(error)}, 400)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response of the route; login, logout and files need no session. Raises RejectedRequest, StatusError."""
        segments = [unquote(segment) for segment in request.rel_url.raw_path.split("/")[1:]]
        is_read = request.method in ("GET", "HEAD")
        if segments == ["login"] and request.method == "POST":
            return await self._login(request)
        if segments == ["logout"] and request.method == "POST":
            return await self._logout(request)
        if segments[0] != "api":
            if not is_read:
                raise RejectedRequest(405, "this address is only for reading")
            return await self._serve_file(request)
        session = self._get_session(request)
        match segments[1:]:
            case ["autoscalers", namespace, name, *rest]:
                return await self._respond_for_autoscaler(request, session, (namespace, name), rest)
            case ["stream"] if request.method == "GET":
                return await self._stream(request, session)
            case route if is_read:
                return await self._respond_for_server(session, route)
        raise RejectedRequest(404, NO_ROUTE)

    async def _respond_for_server(self, session: Session, route: list[str]) -> web.Response:
        """The routes that read, and are about no autoscaler; `route` has the path segments after `api`."""
        match route:
            case ["autoscalers"]:
                return await self._list_rows(session)
            case ["session"]:
                return self._json_response({"cluster": self._live.name, "allowsWrites": self._options.allows_writes})
            case ["reports"]:
                return self._json_response({"reports": await asyncio.to_thread(self._reports.list)})
            case ["reports", name]:
                return self._encoded_response(await asyncio.to_thread(self._reports.read, name))
        raise RejectedRequest(404, NO_ROUTE)

    async def _respond_for_autoscaler(
        self, request: web.BaseRequest, session: Session, key: tuple[str, str], route: list[str]
    ) -> web.Response:
        """The routes of one autoscaler, where the viewer may see its namespace; `route` follows namespace and name."""
        is_read = request.method in ("GET", "HEAD")
        namespace, _ = key
        if not await session.viewer.may_see(namespace):
            permission = viewers.needed_permission(namespace)
            raise RejectedRequest(403, f"you may not {permission}", needs=permission)
        match route:
            case [] if is_read:
                return await self._detail(request, session, *key)
            case ["decisions", decision_id] if is_read:
                kind = request.rel_url.query.get("kind", "")
                return self._json_response(await self._live.explanation(*key, decision_id, kind=kind))
            case ["what-if"] if request.method == "POST":
                return await self._what_if(request, *key)
            case ["spec"] if request.method == "POST":
                return await self._write_spec(request, session, key)
        raise RejectedRequest(404, NO_ROUTE)

    async def _login(self, request: web.BaseRequest) -> web.Response:
        """Begin a session for a token of a login link or of the cluster. Raises RejectedRequest, StatusError."""
        if self._sessions.has_too_many_failures():
            raise RejectedRequest(429, "too many wrong tokens: wait a minute, then log in again", retryMs=60_000)
        token = (await self._read_body(request, _LOGIN_DECODER)).get("token", "")
        viewer: viewers.Viewer | None = None
        if self._sessions.redeem(token):
            viewer = LocalViewer()
            if self._options.on_login is not None:
                self._options.on_login(self.login_link())
        elif self._options.open_viewer is not None and token:
            viewer = await self._open_viewer(self._options.open_viewer, token)
        if viewer is None:
            self._sessions.add_failure()
            raise RejectedRequest(401, f"this login token is wrong, or was used already: {LOGIN_HINT}")
        response = self._json_response({"cluster": self._live.name})
        response.set_cookie(
            self._cookie_name,
            await self._sessions.begin(viewer),
            max_age=round(SESSION_IDLE_S),
            path="/",
            secure=self._address.scheme == "https",
            httponly=True,
            samesite="Strict",
        )
        return response

    async def _open_viewer(self, open_viewer: OpenViewer, token: str) -> viewers.Viewer | None:
        """The viewer of a bearer token; None if the API server does not know it. Raises StatusError."""
        try:
            return await open_viewer(token)
        except StatusError as error:
            if error.code == 401:
                return None
            raise

    async def _logout(self, request: web.BaseRequest) -> web.Response:
        """End the session of the request's cookie, if there is one, and delete the cookie."""
        await self._sessions.end(request.cookies.get(self._cookie_name, ""))
        response = self._json_response({})
        response.del_cookie(self._cookie_name, path="/", secure=self._address.scheme == "https", httponly=True)
        return response

    def _get_session(self, request: web.BaseRequest) -> Session:
        """The session of the request's cookie, whose idle time begins anew. Raises RejectedRequest 401."""
        cookie = request.cookies.get(self._cookie_name, "")
        session = self._sessions.find(cookie)
        if session is None:
            text = "the session has expired" if cookie else "you are not logged in"
            raise RejectedRequest(401, f"{text}: {LOGIN_HINT}")
        return session

    async def _list_rows(self, session: Session) -> web.Response:
        """The rows that the viewer may see. Raises RejectedRequest 503 while they are not read yet, StatusError."""
        if reasons := self._live.unready():
            raise RejectedRequest(503, "; ".join(reasons), retryMs=RETRY_LISTING_MS)
        version = self._live.changes.version
        rows = self._live.rows()
        is_visible = {
            namespace: await session.viewer.may_see(namespace) for namespace in {row.namespace for row in rows}
        }
        since, reason = self._live.since()
        return self._json_response(
            AutoscalerList(
                now=self._live.history.now_ms,
                cluster=self._live.name,
                since=since,
                since_reason=reason,
                rows=tuple([row for row in rows if is_visible[row.namespace]]),
                event_id=f"{self._boot_id}.{version}.{self._live.history.now_ms - OVERLAP_MS}",
            )
        )

    async def _detail(self, request: web.BaseRequest, session: Session, namespace: str, name: str) -> web.Response:
        """One autoscaler over a span. Raises StatusError, RejectedRequest (400, or 403 with the missing permission)."""
        query = request.rel_url.query
        since_ms, until_ms = _parse_instant_ms(query, "from"), _parse_instant_ms(query, "to")
        kind, client = query.get("kind", ""), session.viewer.client
        try:
            return self._json_response(
                await self._live.detail(namespace, name, since_ms, until_ms, kind=kind, client=client)
            )
        except StatusError as error:
            if error.code != 403:
                raise
            raise RejectedRequest(403, str(error), needs=viewers.needed_permission(namespace)) from None

    async def _what_if(self, request: web.BaseRequest, namespace: str, name: str) -> web.Response:
        """The recorded decisions made again with other values. Raises RejectedRequest, StatusError, UsageError."""
        body = await self._read_body(request, _WHAT_IF_DECODER)
        kind = request.rel_url.query.get("kind", "")
        return self._json_response(await self._live.what_if(namespace, name, body.set, body.from_, body.to, kind=kind))

    async def _write_spec(self, request: web.BaseRequest, session: Session, key: tuple[str, str]) -> web.Response:
        """Write fields of a spec; returns the new version. Raises RejectedRequest 403 without --allow-writes, and as
        `_read_body` and `spec_writes.write`.
        """
        if not self._options.allows_writes:
            raise RejectedRequest(
                403, "this dashboard only reads: start it with --allow-writes", needs="--allow-writes"
            )
        change = await self._read_body(request, _SPEC_CHANGE_DECODER)
        kind = request.rel_url.query.get("kind", "")
        client = session.viewer.client or self._live.client
        return self._json_response(await spec_writes.write(client, kind, key, change))

    async def _stream(self, request: web.BaseRequest, session: Session) -> web.StreamResponse:
        """The stream of events, until the client disconnects or the server stops. Raises RejectedRequest 429."""
        if session.stream_count >= STREAMS_MAX:
            raise RejectedRequest(429, "too many pages of this session are open: close some", retryMs=RETRY_MS)
        query = request.rel_url.query
        namespace, name = query.get("namespace", ""), query.get("name", "")
        detail_key = self._live.find_key(namespace, name, query.get("kind", "")) if name else None
        start = parse_position(request.headers.get("Last-Event-ID") or query.get("after") or "", self._boot_id)
        headers = self._headers() | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        response.content_type = "text/event-stream"
        response.charset = "utf-8"
        await response.prepare(request)
        stream = EventStream(
            self._live, self._sessions, session, self._clock, boot_id=self._boot_id, detail_key=detail_key
        )
        stream_task = asyncio.ensure_future(stream.run(response, start))
        stop_task = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((stream_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop_task.cancel()
            stream_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stream_task
        response.force_close()
        if session.was_slow and request.transport is not None:
            request.transport.abort()  # a graceful close would wait for the client to read
        return response

    async def _serve_file(self, request: web.BaseRequest) -> web.Response:
        """A file of the page; 304 if the client has it."""
        if self._files is None:
            package = resources.files("podscaler")
            folders = {path: package.joinpath(folder) for path, folder in self._options.folders.items()}
            self._files = await asyncio.to_thread(StaticFiles, folders)
        file = self._files.find(request.path)
        if file is None:
            raise RejectedRequest(404, NO_ROUTE)
        headers = self._headers() | {"ETag": file.etag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == file.etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers=headers | {"Content-Type": file.content_type})

    async def _read_body(self, request: web.BaseRequest, decoder: "msgspec.json.Decoder[Any]") -> Any:
        """The decoded body. Raises RejectedRequest 413 for more than BODY_MAX_BYTES, 400 if it cannot be decoded."""
        if (request.content_length or 0) > BODY_MAX_BYTES:
            raise RejectedRequest(413, "the body of the request is too long")
        body = await request.content.read(BODY_MAX_BYTES + 1)
        while not request.content.at_eof() and len(body) <= BODY_MAX_BYTES:  # a read returns what has arrived
            body += await request.content.read(BODY_MAX_BYTES + 1 - len(body))
        if len(body) > BODY_MAX_BYTES:
            raise RejectedRequest(413, "the body of the request is too long")
        try:
            return decoder.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RejectedRequest(400, f"the body of the request cannot be read: {error}") from None

    def _json_response(self, value: object, status: int = 200) -> web.Response:
        return self._encoded_response(msgspec.json.encode(value), status)

    def _encoded_response(self, body: bytes, status: int = 200) -> web.Response:
        headers = self._headers() | {"Content-Type": security.JSON, "Cache-Control": "no-store"}
        return web.Response(body=body, status=status, headers=headers)

    def _headers(self) -> dict[str, str]:
        return {**security.HEADERS, **(security.TLS_HEADERS if self._options.tls is not None else {})}


def _parse_instant_ms(query: Mapping[str, str], name: str) -> int | None:
    """An instant in ms of a query; None if it is not given. Raises RejectedRequest 400."""
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise RejectedRequest(400, f"{name} is not an instant in milliseconds since 1970")
    return int(text)


def _status_body(error: StatusError) -> tuple[dict[str, Any], int]:
    """The body and the status for an error of the API server or of `LiveCluster`; 503 for a code of no meaning here."""
    if error.code in (400, 403, 404, 409, 422):
        return {"error": str(error)}, error.code
    return {"error": f"the API server: {error}", "retryMs": RETRY_MS}, 503
