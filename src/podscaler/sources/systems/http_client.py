"""Sends the HTTP requests of the sources `prometheus` and `http`: GET and POST with checked URLs and headers.

A source makes a WebClient, and closes it. Rules:

1. Redirects are not followed, and proxies of the environment are not used.
2. Link-local addresses, and addresses of a cloud's metadata service, are refused, as a literal and after DNS: such a
   service gives the machine's credentials to every process on it.
3. A response has at most BODY_MAX_BYTES.
4. The headers of a spec may not replace those that the request needs, nor carry credentials.

Source: RFC 3927 (IPv4 link-local addresses), RFC 4291 2.5.6, RFC 6052 2.1 (64:ff9b::/96), RFC 9110.
"""

import base64
import ipaddress
import re
import socket
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from podscaler.sources.protocol import InvalidSource, SourceConfig, SourceError, TLSSettings
from podscaler.sources.systems import addresses

BODY_MAX_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
CONNECTIONS_MAX = 2
METADATA_ADDRESSES = frozenset({"100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"})
"""The addresses of metadata services that are not link-local."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that contain an IPv4 address, which a gateway connects to."""
_IS_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_RESERVED_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "host", "content-length", "transfer-encoding"}
)


class RefusedAddress(OSError):
    """A request to an address that rule 2 refuses."""


class WebClient:
    """Sends the requests of one source, by the module's rules.

    Args:
        config: has the credentials that are sent: a token as Bearer, user and password as Basic.
        url: the URL of the request, without user and password.
        headers: further headers of the request.

    Raises:
        InvalidSource: the URL, a header or the authorities are invalid.
    """

    def __init__(self, config: SourceConfig, url: str, headers: Mapping[str, str]) -> None:
        self.url = _checked_url(url)
        self._headers = {**_checked_headers(headers), **_authorization(config.credentials)}
        # True: the default of aiohttp, which http does not use
        self._tls = addresses.context_of(config.tls or TLSSettings()) if self.url.scheme == "https" else True
        self._timeout = aiohttp.ClientTimeout(total=config.timeout_s)
        self._session: aiohttp.ClientSession | None = None

    @property
    def shown_url(self) -> str:
        """The URL without its query, which may have a key."""
        return str(self.url.with_query(None).with_fragment(None))

    async def get(self) -> bytes:
        """The body of the response to a GET request.

        Raises SourceError for a status of 300 and more and for a long body, TimeoutError, and aiohttp's errors.
        """
        async with self._open_session().get(self.url, allow_redirects=False) as response:
            return await _read_body(response)

    async def post_form(self, url: URL, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of the response to a form, sent with POST, also of an error.

        Raises SourceError for a redirect and for a long body, TimeoutError, and aiohttp's errors.
        """
        async with self._open_session().post(url, data=form, allow_redirects=False) as response:
            return response.status, await _read_body(response, reads_errors=True)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        """The HTTP session, opened at the first request."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(aiohttp.ThreadedResolver()),
                ssl=self._tls,
                limit=CONNECTIONS_MAX,
                use_dns_cache=False,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": "podscaler", "Cache-Control": "no-cache", **self._headers},
                timeout=self._timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class GuardedResolver(AbstractResolver):
    """Resolves names, and fails if one of the addresses is refused by rule 2.

    Args:
        resolver: does the resolution.
    """

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name. Raises OSError, also RefusedAddress."""
        results = await self._resolver.resolve(host, port, family)
        if any(is_refused(result["host"]) for result in results):
            raise RefusedAddress(f"{host} has an address that is refused: it is link-local or of a metadata service")
        return results

    async def close(self) -> None:
        """Close the resolver."""
        await self._resolver.close()


def is_refused(address: str) -> bool:
    """Whether an IP address is link-local or of a cloud's metadata service, also embedded in an IPv6 address.

    False for the name of a host.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])  # without the zone (fe80::1%eth0)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        embedded = parsed.ipv4_mapped or parsed.sixtofour
        if parsed in _NAT64:
            embedded = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)  # the last 32 bits
        if embedded is not None:
            parsed = embedded
    return parsed.is_link_local or str(parsed) in METADATA_ADDRESSES


def _checked_url(url_text: str) -> URL:
    """The URL. Raises InvalidSource."""
    try:
        url = URL(url_text)
        port = url.port
    except ValueError as error:
        raise InvalidSource(f"the URL is invalid: {error}") from None
    if url.scheme not in ("http", "https") or not url.host or not port:
        raise InvalidSource("the URL must begin with http:// or https:// and have a host")
    if url.user is not None or url.password is not None:
        raise InvalidSource("the URL must not have a user or a password: use spec.credentials")
    if is_refused(url.host):
        raise InvalidSource(f"the address {url.host} is refused: it is link-local or of a metadata service")
    return url


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a spec. Raises InvalidSource."""
    for name, header in headers.items():
        if not _IS_HEADER_NAME(name) or not header.isprintable():
            raise InvalidSource(f"the header {name!r} is invalid")
        if name.lower() in _RESERVED_HEADERS:
            raise InvalidSource(f"the header {name} may not be set: credentials belong into spec.credentials")
    return dict(headers)


def _authorization(credentials: Mapping[str, str]) -> dict[str, str]:
    """The header with the credentials; empty without credentials. Raises InvalidSource."""
    if token := credentials.get("token"):
        if not token.isprintable():
            raise InvalidSource("the token has a character that no header may have, such as a line break at its end")
        return {"Authorization": f"Bearer {token}"}
    if "username" in credentials or "password" in credentials:
        login = f"{credentials.get('username', '')}:{credentials.get('password', '')}"
        return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
    return {}


async def _read_body(response: aiohttp.ClientResponse, *, reads_errors: bool = False) -> bytes:
    """The body. Raises SourceError for a redirect, for an error status unless `reads_errors`, and for a long body."""
    if 300 <= response.status < 400:
        raise SourceError(f"the server responds with a redirect ({response.status}), which is not followed")
    if response.status >= 400 and not reads_errors:
        raise SourceError(f"the server responds with status {response.status}")
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > BODY_MAX_BYTES:
            raise SourceError(f"the response is longer than {BODY_MAX_BYTES} bytes")
    return bytes(body)
