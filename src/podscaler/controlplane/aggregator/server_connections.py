"""Sends HTTPS requests to other API servers, with this server's client certificate as a front proxy.

`availability`, `remote_documents` and `apiserver.handlers.remote_proxy` call it. There is one connection pool for each
combination of caBundle and insecureSkipTLSVerify, closed when no APIService uses it any more. Headers name the user of
a request (`proxy_headers`); servers trust them because of the client certificate. Another TLS setting concerns
`TLSVerification`, `_verification_of` and `_ssl_context`.

Source: kube-aggregator (proxy transport); the documentation of the aggregation layer. TLS verifies as Go does: the
common name of a certificate is no host name, and every certificate of the bundle is trusted.
"""

import asyncio
import io
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podscaler.base.errors import PodscalerError
from podscaler.controlplane.aggregator.remote_versions import Remote
from podscaler.controlplane.aggregator.service_resolver import Address

CONNECTIONS_MAX = 1000
"""The most connections of one pool; further requests wait."""
CONNECT_TIMEOUT_S = 30.0
KEEPALIVE_S = 90.0
LINE_MAX_BYTES = 64 * 1024
"""The longest status line or header of a response."""
_AUTOMATIC_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself; a proxied request has only those of its client."""

TLSVerification = tuple[bytes, bool]
"""The PEM of the certificate authorities (empty: those of the host), and whether certificates are verified."""


class UnusableBundle(PodscalerError):
    """The caBundle of an APIService holds no certificates."""


class APIServerConnections:
    """The connection pools to other API servers.

    Args:
        identity: a PEM file with the key and the client certificate of this server as a front proxy.
    """

    def __init__(self, identity: Path) -> None:
        self._identity = identity
        self._sessions: dict[TLSVerification, aiohttp.ClientSession] = {}

    async def send(
        self,
        remote: Remote,
        address: Address,
        *,
        method: str = "GET",
        path: str,
        headers: Mapping[str, str] | CIMultiDict[str],
        body: io.BytesIO | None = None,
    ) -> aiohttp.ClientResponse:
        """Send a request; the caller reads the body of the response and closes it.

        Args:
            remote: the server; its caBundle and name verify the certificate.
            address: one of its addresses.
            method: the HTTP method.
            path: path and query, escaped; the path begins with one slash, so that no part of it names a host.
            headers: all headers except those of the connection.
            body: the request's body, None if it has none.

        Raises:
            ValueError: the path does not begin with exactly one slash.
            UnusableBundle: the caBundle holds no certificates.
            aiohttp.ClientError, OSError: the server cannot be reached or verified, or does not speak HTTP.
            TimeoutError: it does not accept the connection in time.
        """
        url = _request_url(address, path)
        session = await self._session_for(remote)
        options: dict[str, Any] = {"server_hostname": remote.server_name} if remote.verifies_certificate else {}
        return await session.request(
            method,
            url,
            headers=headers,
            data=body,
            allow_redirects=False,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            **options,
        )

    async def keep_only(self, remotes: Iterable[Remote]) -> None:
        """Close the pools that none of `remotes` uses."""
        used = {_verification_of(remote) for remote in remotes}
        for verification in self._sessions.keys() - used:
            await self._sessions.pop(verification).close()

    async def close(self) -> None:
        """Close all pools."""
        await self.keep_only(())

    async def _session_for(self, remote: Remote) -> aiohttp.ClientSession:
        """The connections to servers that are verified in the same way. Raises UnusableBundle."""
        verification = _verification_of(remote)
        session = self._sessions.get(verification)
        if session is None:
            context = await asyncio.to_thread(_ssl_context, self._identity, remote)
            # a concurrent request may have created it
            session = self._sessions.get(verification) or _new_session(context)
            self._sessions[verification] = session
        return session


def _request_url(address: Address, path_and_query: str) -> URL:
    """The URL of an escaped path and query at `address`, made of its parts. Raises ValueError as `send`."""
    (host, port), (path, _, query) = address, path_and_query.partition("?")
    if not path.startswith("/") or path.startswith("//"):
        raise ValueError(f"the path must begin with one slash: {path!r}")
    return URL.build(scheme="https", host=host, port=port, path=path, query_string=query, encoded=True)


def _verification_of(remote: Remote) -> TLSVerification:
    return remote.authority, remote.verifies_certificate


def _new_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    """Connections without cookies, with limits for heads and for connecting."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS_MAX, keepalive_timeout=KEEPALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        auto_decompress=False,
        max_line_size=LINE_MAX_BYTES,
        max_field_size=LINE_MAX_BYTES,
    )


def _ssl_context(identity: Path, remote: Remote) -> ssl.SSLContext:
    """A TLS context that presents `identity` and verifies `remote` as its APIService asks. Raises UnusableBundle."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(identity)
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not remote.verifies_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif remote.authority:
        try:
            context.load_verify_locations(cadata=remote.authority.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise UnusableBundle("unable to load root certificates: unable to parse bytes as PEM block") from error
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context
