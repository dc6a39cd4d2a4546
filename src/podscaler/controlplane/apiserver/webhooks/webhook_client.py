"""Sends requests to webhooks over HTTPS: to a URL, or to an endpoint of a Service.

`webhook_admission` and `conversion_webhooks` call `WebhookClient.post`, and `parse_review` for the response. A Service
is reached at a ready endpoint, and its certificate must be for NAME.NAMESPACE.svc. This API server itself is never
called: it could wait for itself for ever. Another kind of clientConfig: a case in `_target` and in `_choose_address`.

Source: kube-apiserver's webhook clients and their errors.
"""

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from yarl import URL

from podscaler.api.resource.resources import Object
from podscaler.api.schema import decoding
from podscaler.api.text import json_text, quoting
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.aggregator import connection_messages, service_resolver
from podscaler.controlplane.aggregator.service_resolver import Address, Unreachable
from podscaler.controlplane.apiserver.http.request_bodies import GO_SCHEME
from podscaler.controlplane.registry.registry import Registry

RESPONSE_MAX_BYTES = 8 * 1024 * 1024
POOLS_MAX = 64
"""How many connection pools are kept, one for each authority and server name."""
CONNECTIONS_MAX = 100
"""The most connections of one pool."""
HTTPS_PORT = 443
_USER_AGENT = "kube-apiserver-admission"
_MESSAGE_BY_STATUS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}
_BODY_MAX_CHARACTERS = 2048
"""How much of the body of an error is shown in messages."""


class CallError(PodscalerError):
    """A webhook could not be called; the text says why."""


_PoolKey = tuple[bytes, str]
"""What servers are verified by: the PEM of the certificate authorities (empty: those of the host), and a host name."""


@dataclass
class _Pool:
    """The connections that verify servers by one authority and one name.

    Attributes:
        session: the connections.
        calls: how many calls use them now.
    """

    session: aiohttp.ClientSession
    calls: int = 0


class WebhookClient:
    """The connections to webhooks.

    Args:
        registry: the Services and EndpointSlices.

    Attributes:
        own_addresses: the addresses of this API server, which are not called; `cli.up.control_plane` adds them.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.own_addresses: set[Address] = set()
        self._pools: OrderedDict[_PoolKey, _Pool] = OrderedDict()
        """In the order of their last use."""
        self._service_calls = 0

    async def post(self, client_config: Object, authority: bytes, body: bytes, timeout_s: int) -> bytes:
        """The body of the response to a POST request.

        Args:
            client_config: the clientConfig, which was validated: `url` or `service`.
            authority: the PEM of the certificate authorities; empty: those of the host.
            body: the JSON to send.
            timeout_s: the limit of the whole call.

        Raises CallError.
        """
        try:
            target_url, url_text, server_name = _target(client_config, timeout_s)
        except ValueError as error:  # of yarl, for a host that is no host name
            raise CallError(str(error)) from error
        try:
            address = self._choose_address(client_config, target_url)
        except Unreachable as error:
            raise CallError(f'Post "{url_text}": {error}') from error
        try:
            async with asyncio.timeout(timeout_s):
                return await self._post(target_url, address, (authority, server_name), body)
        except TimeoutError as error:
            raise CallError(f'Post "{url_text}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            problem = connection_messages.go_message(error, *address, server_name)
            raise CallError(f'Post "{url_text}": {problem}') from error

    def _choose_address(self, client_config: Object, target_url: URL) -> Address:
        """The address to connect to; the endpoints of a Service take turns.

        Raises Unreachable if it is that of this server, or a Service has none.
        """
        service = client_config.get("service")
        if service is None:
            host, port = target_url.host or "", target_url.port or HTTPS_PORT
        else:
            service_port = service.get("port", HTTPS_PORT)
            addresses = service_resolver.resolve(self._registry, service["namespace"], service["name"], service_port)
            self._service_calls += 1
            host, port = addresses[self._service_calls % len(addresses)]
        if (_canonical_host(host), port) in self.own_addresses:
            raise Unreachable("the webhook is this API server")
        return host, port

    async def _post(self, target_url: URL, address: Address, pool_key: _PoolKey, body: bytes) -> bytes:
        """The body of the response. Raises CallError for one that is too large, or not successful."""
        (host, port), (_, server_name) = address, pool_key
        url = URL.build(
            scheme="https",
            host=connection_messages.bracketed(host),  # as `encoded` leaves the host as it is
            port=port,
            path=target_url.raw_path,
            query_string=target_url.raw_query_string,
            encoded=True,
        )
        target_port = target_url.port or HTTPS_PORT
        host_text = connection_messages.bracketed(server_name)
        host_header = host_text if target_port == HTTPS_PORT else f"{host_text}:{target_port}"
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Host": host_header}
        async with (
            self._connections(pool_key) as session,
            session.post(
                url, data=body, headers=headers, allow_redirects=False, server_hostname=server_name
            ) as response,
        ):
            content = await response.content.read(RESPONSE_MAX_BYTES + 1)
            while not response.content.at_eof() and len(content) <= RESPONSE_MAX_BYTES:
                content += await response.content.read(RESPONSE_MAX_BYTES + 1 - len(content))
        if len(content) > RESPONSE_MAX_BYTES:
            raise CallError(f"the response has more than {RESPONSE_MAX_BYTES} bytes")
        if not 200 <= response.status < 300:
            raise CallError(_error_message(response.status, content, response.content_type))
        return content

    @asynccontextmanager
    async def _connections(self, pool_key: _PoolKey) -> AsyncIterator[aiohttp.ClientSession]:
        """The connections that verify servers by an authority and a name, for one call. Raises CallError."""
        if pool_key not in self._pools:
            authority, _ = pool_key
            context = await asyncio.to_thread(_ssl_context, authority)
            if pool_key not in self._pools:  # another call may have opened them meanwhile
                self._pools[pool_key] = _Pool(_new_session(context))
        pool = self._pools[pool_key]
        self._pools.move_to_end(pool_key)
        pool.calls += 1
        try:
            await self._close_surplus()
            yield pool.session
        finally:
            pool.calls -= 1

    async def _close_surplus(self) -> None:
        """Close pools beyond `POOLS_MAX` that no call uses, those first that were used longest ago."""
        surplus = max(len(self._pools) - POOLS_MAX, 0)
        unused_keys = [pool_key for pool_key, pool in self._pools.items() if not pool.calls]
        closing = [self._pools.pop(pool_key) for pool_key in unused_keys[:surplus]]
        for pool in closing:
            await pool.session.close()

    async def close(self) -> None:
        """Close all connections."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.session.close()


def _canonical_host(host: str) -> str:
    """A host in one of its spellings: `127.0.0.1` for `127.1`, `localhost` and `LOCALHOST.`."""
    name = host.lower().rstrip(".")
    try:
        return socket.inet_ntoa(socket.inet_aton("127.0.0.1" if name == "localhost" else name))
    except OSError:  # a name, or an address of IPv6
        return name


def _target(client_config: Object, timeout_s: int) -> tuple[URL, str, str]:
    """The URL of a webhook with its query, the URL in messages, and the name that the certificate must be for.

    Args:
        client_config: the clientConfig, with `url` or `service`.
        timeout_s: becomes the parameter `timeout`.

    Raises ValueError for an invalid host name.
    """
    service = client_config.get("service")
    if service is None:
        url = URL(client_config["url"]).with_query({"timeout": f"{timeout_s}s"})
        return url, str(url), url.host or ""
    server_name = f"{service['name']}.{service['namespace']}.svc"
    port = service.get("port", HTTPS_PORT)
    path = "/" + (service.get("path") or "").lstrip("/")
    url = URL.build(scheme="https", host=server_name, port=port, path=path)
    url_text = f"https://{server_name}:{port}{path}?timeout={timeout_s}s"
    return url.with_query({"timeout": f"{timeout_s}s"}), url_text, server_name


def parse_review(body: bytes, kind: str, group: str, versions: Iterable[str]) -> Object:
    """The review in the body of a response; one without kind and apiVersion is left to the caller.

    Args:
        body: JSON.
        kind, group: the expected ones: `AdmissionReview`, `admission.k8s.io`.
        versions: the known versions of the group.

    Raises CallError for a body that is no object, for one beyond the limits of the API (depth, size of numbers), and
    for another kind or version.
    """
    try:
        document = decoding.parse_json(body)
    except DecodeError as error:
        if str(error) == json_text.TOO_DEEP or body.startswith(b"{"):
            raise CallError(str(decoding.no_type_meta(error))) from error
        document = ""  # upstream reads it as YAML, in which other bodies are a text
    try:
        stated = decoding.read_type_meta({} if document is None else document)
    except DecodeError as error:
        raise CallError(str(error)) from error
    is_known = stated.kind == kind and stated.api_version in {f"{group}/{version}" for version in versions}
    if stated.kind and stated.api_version and not is_known:
        raise CallError(f'no kind "{stated.kind}" is registered for version "{stated.api_version}" {GO_SCHEME}')
    return document or {}


def _error_message(status: int, body: bytes, content_type: str) -> str:
    """The message of client-go for a response that is no success: that of its Status, or one by the HTTP status."""
    try:
        message = decoding.parse_json(body)["message"]
        if isinstance(message, str) and message:
            return message
    except (DecodeError, KeyError, TypeError, IndexError):
        pass
    body_text = (
        body[:_BODY_MAX_CHARACTERS].decode("utf-8", "replace").strip() if content_type.startswith("text/") else ""
    )
    if status == 500:
        quoted_text = quoting.quoted(body_text or "unknown")
        return f"an error on the server ({quoted_text}) has prevented the request from succeeding"
    if status == 403:
        return body_text or "unknown"
    general_message = f"the server responded with the status code {status} but did not return more information"
    return _MESSAGE_BY_STATUS.get(status, general_message)


def _new_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    """A pool of connections without cookies; `post` limits the time of a call."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS_MAX),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"User-Agent": _USER_AGENT},
    )


def _ssl_context(authority: bytes) -> ssl.SSLContext:
    """The TLS settings with that authority, or with those of the host. Raises CallError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        if authority:
            context.load_verify_locations(cadata=authority.decode("ascii"))
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    except (ssl.SSLError, ValueError) as error:
        raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from error
    return context
