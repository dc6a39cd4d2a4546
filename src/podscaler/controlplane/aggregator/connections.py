"""Connections to other API servers: pooled, over TLS, with this server's certificate of a front proxy.

Called by whoever sends such a server something. There is a pool for each way to verify servers, closed when no
APIService uses it any more. Whom a request is sent for stands in its headers, which servers believe because of the
certificate.

Source: upstream's kube-aggregator (proxy transport); the documentation of the aggregation layer. TLS verifies as Go
does: names of subjects do not count as host names, and whatever the bundle holds is trusted.
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
from podscaler.controlplane.aggregator.service_resolver import Address
from podscaler.controlplane.aggregator.versions import Remote

MOST_CONNECTIONS = 1000
"""In one pool; whoever needs one more waits."""
CONNECT_TIMEOUT_S = 30.0
KEEPALIVE_S = 90.0
LINE_MAX_BYTES = 64 * 1024
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What aiohttp would say by itself."""

_Trust = tuple[bytes, bool]


class UnusableBundle(PodscalerError):
    """The caBundle of an APIService holds no certificates."""


class APIServerConnections:
    """See the module.

    Args:
        identity: a PEM file with this server's key and certificate of a front proxy.
    """

    def __init__(self, identity: Path) -> None:
        self._identity = identity
        self._sessions: dict[_Trust, aiohttp.ClientSession] = {}

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
        """Send a request; the answer's body is still to be read, and it must be closed.

        Args:
            remote: how the server is verified.
            address: where it is.
            path: path and query, escaped; the path begins with one slash, so that no part of it names a host.
            headers: all that are sent, but those of the connection.

        Raises:
            ValueError: the path does not begin with exactly one slash.
            UnusableBundle: there is nothing to verify the server with.
            aiohttp.ClientError: it cannot be reached, is another one, or does not speak HTTP.
            TimeoutError: it does not take the connection.
        """
        url = _url(address, path)
        session = await self._session(remote)
        further: dict[str, Any] = {"server_hostname": remote.server_name} if remote.verifies else {}
        return await session.request(
            method, url, headers=headers, data=body, allow_redirects=False, skip_auto_headers=_OWN_HEADERS, **further
        )

    async def keep_only(self, remotes: Iterable[Remote]) -> None:
        """Close the pools that none of these use."""
        used = {_trust(remote) for remote in remotes}
        for trust in self._sessions.keys() - used:
            await self._sessions.pop(trust).close()

    async def close(self) -> None:
        """Close all."""
        await self.keep_only(())

    async def _session(self, remote: Remote) -> aiohttp.ClientSession:
        found = self._sessions.get(_trust(remote))
        if found is None:
            context = await asyncio.to_thread(_context, self._identity, remote)
            found = self._sessions.get(_trust(remote)) or _session(context)  # another request may have been quicker
            self._sessions[_trust(remote)] = found
        return found


def _url(address: Address, target: str) -> URL:
    """The URL of an escaped path and query at `address`, made of its parts. Raises ValueError as `send`."""
    path, _, query = target.partition("?")
    if not path.startswith("/") or path.startswith("//"):
        raise ValueError(f"the path must begin with one slash: {path!r}")
    return URL.build(scheme="https", host=address[0], port=address[1], path=path, query_string=query, encoded=True)


def _trust(remote: Remote) -> _Trust:
    return remote.authority, remote.verifies


def _session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=MOST_CONNECTIONS, keepalive_timeout=KEEPALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        auto_decompress=False,
        max_line_size=LINE_MAX_BYTES,
        max_field_size=LINE_MAX_BYTES,
    )


def _context(identity: Path, remote: Remote) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(identity)
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not remote.verifies:
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
