"""The HTTP requests of probes and lifecycle hooks.

`kubelet.probes.handlers` calls `make_request` and `HttpClient.get`. All requests of the node share one aiohttp client
session, which the first request opens. Each request has a connection of its own, without proxy, cookies, compression or
verification of certificates, as in kubelet. A request that HTTP does not allow (a header with a line break) is rejected
with ValueError before it is sent.

Source: pkg/probe/http and pkg/kubelet/lifecycle (kubelet), net/http (Go), HTTPGetAction (API reference).
Differs: a path without a leading slash gets one; a hook with the scheme HTTPS is not retried over plain HTTP.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

import aiohttp
from aiohttp import ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

BODY_BYTES_MAX: Final = 10 * 1024
"""As in kubelet."""
HEADER_BYTES_MAX: Final = 64 * 1024
REDIRECTS_MAX: Final = 10
"""As in net/http."""

_FOLLOWED_STATUSES: Final = frozenset((301, 302, 303, 307, 308))
_NOT_SENT: Final = frozenset(("content-length", "transfer-encoding", "trailer"))
"""Headers that net/http does not take from its caller."""
_AUTOMATIC_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself."""
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN_IN_VALUES: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HOST_VALUE: Final = re.compile(r"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]+")
_ESCAPED_PATH: Final = re.compile(r"(?:[0-9A-Za-z\-_.~/!$&'()*+,;=:@\[\]]|%[0-9A-Fa-f]{2})*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# besides letters and digits, the characters that net/url (Go) does not escape in a path, and in a query
_PATH_SAFE: Final = "/$&+,:;=@~"
_QUERY_SAFE: Final = "/?:@!$&'()*+,;=-._~%[]{}|\\^`\"<>"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A GET request.

    Attributes:
        target: the path and query of the request line, escaped.
        headers: names and values as they are sent, without Host.
        host_header: the value of Host, empty for `authority`.
    """

    scheme: str
    host: str
    port: int
    target: str
    headers: tuple[tuple[str, str], ...]
    host_header: str

    @property
    def url(self) -> URL:
        """The URL, with `target` unchanged. Raises ValueError for an invalid host."""
        base = URL.build(scheme=self.scheme, host=self.host, port=self.port)
        return URL(str(base).rstrip("/") + self.target, encoded=True)

    @property
    def authority(self) -> str:
        """Host and port as in a URL; an IPv6 address has brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """Status and the first BODY_BYTES_MAX of the body, as text."""

    status: int
    body: str


class HttpClient:
    """Sends GET requests over connections of their own; `close` it at the end."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, request: ProbeRequest) -> ProbeResponse:
        """Send the request, follow redirects to the same host (any port), and return the last response.

        A redirect to another host is not followed: it is the response. The caller limits the time.

        Raises ValueError (an invalid request, too many redirects), OSError, aiohttp.ClientError.
        """
        for _ in range(REDIRECTS_MAX):
            response, location = await self._get_once(request)
            if response.status not in _FOLLOWED_STATUSES or not location:
                return response
            next_request = redirected_request(request, location)
            if next_request.host != request.host:
                return response
            request = next_request
        raise ValueError(f"stopped after {REDIRECTS_MAX} redirects")

    async def close(self) -> None:
        """Close the client session; the next `get` opens another."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _get_once(self, request: ProbeRequest) -> tuple[ProbeResponse, str]:
        """Send the request once; returns the response and its Location header, empty if it has none.

        Raises ValueError, OSError, aiohttp.ClientError.
        """
        headers = [("Host", request.host_header or request.authority), *request.headers]
        _check_headers(headers)
        session = self._open_session()
        async with session.get(request.url, headers=headers, allow_redirects=False) as response:
            body = await _read_body(response.content)
            return ProbeResponse(response.status, body.decode("utf-8", "replace")), response.headers.get("Location", "")

    def _open_session(self) -> aiohttp.ClientSession:
        """The session of all requests, opened by the first one.

        It has no cookies, reuses no connections, and verifies no certificates, as in kubelet.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=TCPConnector(ssl=False, force_close=True, limit=0, use_dns_cache=False),
                cookie_jar=DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=_AUTOMATIC_HEADERS,
                timeout=ClientTimeout(total=None, sock_connect=None),
                max_line_size=HEADER_BYTES_MAX,
                max_field_size=HEADER_BYTES_MAX,
            )
        return self._session


async def _read_body(content: aiohttp.StreamReader) -> bytes:
    """The first BODY_BYTES_MAX bytes of a body. Raises OSError, aiohttp.ClientError."""
    body = b""
    while len(body) < BODY_BYTES_MAX and (chunk := await content.read(BODY_BYTES_MAX - len(body))):
        body += chunk
    return body


def make_request(action: Mapping[str, Any], host: str, port: int, *, user_agent: str) -> ProbeRequest:
    """The request of an `httpGet`.

    Args:
        action: a core/v1 HTTPGetAction.
        host, port: where the request is sent.
        user_agent: the User-Agent, unless the action's headers have one.
    """
    own_headers = [(header["name"], header.get("value") or "") for header in action.get("httpHeaders") or []]
    own_names = {name.lower() for name, _ in own_headers}
    default_headers = []
    if "user-agent" not in own_names:
        default_headers.append(("User-Agent", user_agent))
    if "accept" not in own_names:
        default_headers.append(("Accept", "*/*"))
    sent_headers = [
        (name, value)
        for name, value in own_headers
        if name.lower() not in _NOT_SENT | {"host"} and not _removes_default(name, value)
    ]
    return ProbeRequest(
        scheme="https" if action.get("scheme") == "HTTPS" else "http",
        host=host,
        port=port,
        target=request_target(action.get("path") or "/"),
        headers=(*default_headers, *sent_headers),
        host_header=next((value for name, value in own_headers if name.lower() == "host"), ""),
    )


def _removes_default(name: str, value: str) -> bool:
    """Whether the header is left out: Accept or User-Agent with an empty value, which removes the default."""
    return name.lower() in ("accept", "user-agent") and not value


def request_target(path: str) -> str:
    """The target in the request line for the path of an `httpGet`, with its query; without blanks and line breaks.

    Source: formatURL (kubelet), net/url (Go): a path that is not a valid URL is escaped as a whole.
    """
    try:
        url = urlsplit(path)
    except ValueError:
        url = None
    if url is None or _CONTROL_CHARACTER.search(path) or _BAD_ESCAPE.search(url.path):
        return _with_slash(quote(path, safe=_PATH_SAFE))
    is_escaped = _ESCAPED_PATH.fullmatch(url.path) is not None
    escaped_path = url.path if is_escaped else quote(unquote_to_bytes(url.path), _PATH_SAFE)
    query = quote(url.query, safe=_QUERY_SAFE)
    return _with_slash(escaped_path) + (f"?{query}" if query else "")


def _with_slash(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def redirected_request(request: ProbeRequest, location: str) -> ProbeRequest:
    """The request that follows a redirect; a relative `location` keeps a custom Host. Raises ValueError."""
    url = urlsplit(urljoin(f"{request.scheme}://{request.authority}{request.target}", location))
    if url.scheme not in ("http", "https"):
        raise ValueError(f'unsupported protocol scheme "{url.scheme}"')
    return replace(
        request,
        scheme=url.scheme,
        host=url.hostname or request.host,
        port=url.port or (443 if url.scheme == "https" else 80),
        target=request_target(url._replace(scheme="", netloc="").geturl() or "/"),
        host_header="" if urlsplit(location).netloc else request.host_header,
    )


def _check_headers(headers: list[tuple[str, str]]) -> None:
    """Raise ValueError, in the words of net/http, for headers that cannot be sent."""
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"net/http: invalid header field name {name!r}")
        if _FORBIDDEN_IN_VALUES.search(value):
            raise ValueError(f'net/http: invalid header field value for "{name}"')
        if name == "Host" and not _HOST_VALUE.fullmatch(value):
            raise ValueError("http: invalid Host header")
