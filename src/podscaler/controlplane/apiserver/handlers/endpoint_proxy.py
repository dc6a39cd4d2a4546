"""Proxies requests for `pods/ID/proxy`, `services/ID/proxy` and `nodes/ID/proxy` to pods and the kubelet.

`dispatch` calls `forward`; `proxy_targets` finds the address, and has the kinds that are proxied. Bodies are relayed as
they come, in both directions. The client's credentials are not sent on. A redirect to the same host leads through the
proxy again.

Source: kube-apiserver's proxy subresources and its upgrade-aware proxy: the redirect of an empty path, the X-Forwarded
headers, the Location header, and the error of a target that cannot be reached.
Differs: links in HTML pages are not rewritten, and connections cannot be upgraded.
"""

import asyncio
import ssl
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import connection_messages, proxy_headers
from podscaler.controlplane.apiserver.handlers import proxied_response, proxy_targets
from podscaler.controlplane.apiserver.handlers.proxy_targets import ProxyTarget
from podscaler.controlplane.apiserver.http import http_errors, request_paths, responses, websockets
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse

CONNECT_TIMEOUT_S: Final = 30.0
LINE_MAX_BYTES: Final = 64 * 1024
"""The longest status line or header of a response."""
_BASE_SEGMENTS: Final = 6
_NAMESPACED_BASE_SEGMENTS: Final = 8
"""How many segments of a path end at `proxy`: "", api, v1, [namespaces, NAMESPACE,] PLURAL, ID, proxy."""
_OWN_HEADERS = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE, hdrs.USER_AGENT)
"""Headers that aiohttp must not add by itself."""


async def forward(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """The response of the target, which has been sent when this returns, or the redirect of an empty path.

    Raises StatusError as `proxy_targets.resolve`, 400 for an upgrade, 503 if the target cannot be reached; UsageError
    if the client certificate for the kubelet cannot be read.
    """
    target, http = proxy_targets.resolve(server, request), request.http
    if websockets.is_upgrade(http):
        raise http_errors.bad_request("connections cannot be upgraded through the proxy")
    base, path = _split_path(request)
    if not path and http.method in (hdrs.METH_GET, hdrs.METH_HEAD):
        return _redirect(base, http)
    async with await _open_session(target) as session:
        received = await _send_request(session, http, target, base=base, path=path or "/")
        try:
            location = received.headers.get(hdrs.LOCATION)
            headers = {} if location is None else {"Location": through_proxy(location, base, target, http.host)}
            response = await proxied_response.start(http, received, is_stream=True, headers=headers)
            await proxied_response.relay_body(http, received, response, timeout_s=None)
            return response
        finally:
            received.close()


def through_proxy(location: str, base: str, target: ProxyTarget, host: str) -> str:
    """The Location of a redirect for the client: below `base` if it is an absolute path of the same host.

    Args:
        location: the target's header.
        base: the escaped path up to `proxy`.
        target: the pod or kubelet that sent it.
        host: the Host header of the client's request.
    """
    try:
        parts = urlsplit(location)
    except ValueError:  # no URL, such as `http://[bad`: the client gets what the target sent
        return location
    is_elsewhere = parts.netloc and parts.netloc not in (f"{target.host}:{target.port}", target.host, host)
    is_below_base = parts.path.startswith(f"{base}/")
    if is_elsewhere or not parts.path.startswith("/") or (is_below_base and not parts.netloc):
        return location
    path = parts.path if is_below_base else base + parts.path
    return urlunsplit(("https", host, path, parts.query, parts.fragment))


def _split_path(request: ResourceRequest) -> tuple[str, str]:
    """The escaped path up to the subresource, and what follows; the latter is empty or begins with a slash."""
    decoded_path, _ = request_paths.split(request.http.raw_path)
    path = quote(decoded_path, safe=proxied_response.UNESCAPED_IN_PATHS)
    base_segments = _NAMESPACED_BASE_SEGMENTS if request.path.namespace else _BASE_SEGMENTS
    base = "/".join(path.split("/")[:base_segments])
    return base, _cleaned_path(path.removeprefix(base))


def _cleaned_path(path: str) -> str:
    """An escaped path without empty segments and dots, as upstream joins it; a slash at its end stays."""
    segments: list[str] = []
    for segment in path.split("/"):
        name = unquote(segment)
        if name == "..":
            segments[-1:] = []  # also if there is none
        elif name not in ("", "."):
            segments.append(segment)
    cleaned = "".join(f"/{segment}" for segment in segments)
    return f"{cleaned}/" if path.endswith("/") else cleaned


def _redirect(base: str, http: web.BaseRequest) -> EncodedResponse:
    """The redirect of an empty path to `/`, with the same query."""
    _, _, query = http.raw_path.partition("?")
    location = f"{base}/?{query}" if query else f"{base}/"
    return EncodedResponse(b"", 301, responses.TEXT_TYPE, {hdrs.LOCATION: location})


async def _open_session(target: ProxyTarget) -> aiohttp.ClientSession:
    """A session for one request. Raises UsageError as `forward`."""
    tls: ssl.SSLContext | bool = False if target.make_tls is None else await asyncio.to_thread(target.make_tls)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        auto_decompress=False,
        max_line_size=LINE_MAX_BYTES,
        max_field_size=LINE_MAX_BYTES,
    )
    # aiohttp repeats a GET or DELETE after a lost connection; Go does that on a reused connection only, and this is new
    session._retry_connection = False  # there is no public option
    return session


async def _send_request(
    session: aiohttp.ClientSession, http: web.BaseRequest, target: ProxyTarget, *, base: str, path: str
) -> aiohttp.ClientResponse:
    """Send the client's request; returns the head of the response. Raises StatusError 503.

    `base` is the escaped path up to `proxy`, for a header, `path` the escaped path after that.
    """
    _, _, query = http.raw_path.partition("?")
    url = URL.build(
        scheme=target.scheme, host=target.host, port=target.port, path=path, query_string=query, encoded=True
    )
    try:
        return await session.request(
            http.method,
            url,
            headers=_headers(http, forwarded_uri=base + path),
            data=http.content if http.body_exists else None,
            allow_redirects=False,
            skip_auto_headers=_OWN_HEADERS,
        )
    except (aiohttp.ClientError, OSError) as error:  # a timeout while connecting is one
        reason = connection_messages.go_message(error, target.host, target.port, target.host)
        message = f"error trying to reach service: {reason}"
        raise StatusError(message, code=503, reason="ServiceUnavailable") from None


def _headers(http: web.BaseRequest, *, forwarded_uri: str) -> CIMultiDict[str]:
    """The headers of the proxied request: those of the client without its credentials, and the X-Forwarded headers."""
    headers = proxy_headers.request_headers(http.headers)
    if hdrs.CONTENT_LENGTH in http.headers and http.body_exists:
        headers[hdrs.CONTENT_LENGTH] = http.headers[hdrs.CONTENT_LENGTH]
    earlier_clients, client = http.headers.get(hdrs.X_FORWARDED_FOR), http.remote or ""
    headers[hdrs.X_FORWARDED_FOR] = f"{earlier_clients}, {client}" if earlier_clients else client
    headers[hdrs.HOST] = http.host
    headers[hdrs.X_FORWARDED_HOST] = http.host
    headers[hdrs.X_FORWARDED_PROTO] = "https"
    headers["X-Forwarded-Uri"] = forwarded_uri
    return headers
