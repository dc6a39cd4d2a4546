"""Sends requests to webhooks over HTTPS: to a URL, or to an endpoint of a Service.

`webhook_admission` calls it. A Service is reached at a ready endpoint, and its certificate must be for
NAME.NAMESPACE.svc. This API server itself is never called, as it could wait for itself for ever.

Source: kube-apiserver's webhook clients and their errors.
"""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import msgspec
from yarl import URL

from podscaler.api.resource.resources import Object
from podscaler.api.text import quoting
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.aggregator import connection_messages, service_resolver
from podscaler.controlplane.aggregator.service_resolver import Address, Unreachable
from podscaler.controlplane.registry.registry import Registry

RESPONSE_MAX_BYTES = 8 * 1024 * 1024
POOLS_MAX = 64
"""How many connection pools are kept, one for each authority and server name."""
CONNECTIONS_MAX = 100
HTTPS_PORT = 443
_USER_AGENT = "kube-apiserver-admission"
_TEXT_BY_STATUS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}
_BODY_MAX_CHARS = 2048
_NO_OBJECT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_GO_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


class CallError(PodscalerError):
    """A webhook could not be called; the text says why."""


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
        own_addresses: the addresses of this API server, which are not called.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.own_addresses: set[Address] = set()
        self._pools: OrderedDict[tuple[bytes, str], _Pool] = OrderedDict()
        self._calls = 0

    async def post(self, client: Object, authority: bytes, body: bytes, timeout_s: int) -> bytes:
        """The body of the response to a POST request.

        Args:
            client: the clientConfig, which was validated: `url` or `service`.
            authority: the PEM of the certificate authorities; empty: those of the host.
            body: the JSON to send.
            timeout_s: the limit of the whole call.

        Raises CallError.
        """
        try:
            target, shown, server_name = _target(client, timeout_s)
        except ValueError as error:  # of yarl, for a host that is no host name
            raise CallError(str(error)) from error
        try:
            address = self._address(client, target)
        except Unreachable as error:
            raise CallError(f'Post "{shown}": {error}') from error
        try:
            async with asyncio.timeout(timeout_s):
                return await self._post(target, address, (authority, server_name), body)
        except TimeoutError as error:
            raise CallError(f'Post "{shown}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            problem = connection_messages.go_message(error, *address, server_name)
            raise CallError(f'Post "{shown}": {problem}') from error

    def _address(self, client: Object, target: URL) -> Address:
        """The address to connect to. Raises Unreachable if it is that of this server, or a Service has none."""
        service = client.get("service")
        if service is None:
            address = target.host or "", target.port or HTTPS_PORT
        else:
            port = service.get("port", HTTPS_PORT)
            addresses = service_resolver.resolve(self._registry, service["namespace"], service["name"], port)
            self._calls += 1
            address = addresses[self._calls % len(addresses)]
        named = ("127.0.0.1" if address[0] == "localhost" else address[0]), address[1]
        if named in self.own_addresses:
            raise Unreachable("the webhook is this API server")
        return address

    async def _post(self, target: URL, address: Address, identity: tuple[bytes, str], body: bytes) -> bytes:
        """The body of the response. Raises CallError for one that is too large, or not successful."""
        url = URL.build(
            scheme="https",
            host=address[0],
            port=address[1],
            path=target.raw_path,
            query_string=target.raw_query_string,
            encoded=True,
        )
        own_port = target.port or HTTPS_PORT
        host = identity[1] if own_port == HTTPS_PORT else f"{identity[1]}:{own_port}"
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Host": host}
        async with (
            self._connections(identity) as session,
            session.post(
                url, data=body, headers=headers, allow_redirects=False, server_hostname=identity[1]
            ) as response,
        ):
            content = await response.content.read(RESPONSE_MAX_BYTES + 1)
            while not response.content.at_eof() and len(content) <= RESPONSE_MAX_BYTES:
                content += await response.content.read(RESPONSE_MAX_BYTES + 1 - len(content))
        if len(content) > RESPONSE_MAX_BYTES:
            raise CallError(f"the response has more than {RESPONSE_MAX_BYTES} bytes")
        if not 200 <= response.status < 300:
            raise CallError(_status_text(response.status, content, response.content_type))
        return content

    @asynccontextmanager
    async def _connections(self, identity: tuple[bytes, str]) -> AsyncIterator[aiohttp.ClientSession]:
        """The connections that verify servers by an authority and a name, for one call.

        Beyond POOLS_MAX those are closed that no call uses and that were used longest ago.
        """
        if identity not in self._pools:
            context = await asyncio.to_thread(_ssl_context, identity[0])
            if identity not in self._pools:  # another call may have opened them meanwhile
                self._pools[identity] = _Pool(_new_session(context))
        pool = self._pools[identity]
        self._pools.move_to_end(identity)
        pool.calls += 1
        try:
            await self._close_surplus()
            yield pool.session
        finally:
            pool.calls -= 1

    async def _close_surplus(self) -> None:
        unused = [identity for identity, pool in self._pools.items() if not pool.calls]
        surplus = [self._pools.pop(identity) for identity in unused[: max(len(self._pools) - POOLS_MAX, 0)]]
        for pool in surplus:
            await pool.session.close()

    async def close(self) -> None:
        """Close all connections."""
        while self._pools:
            await self._pools.popitem()[1].session.close()


def _target(client: Object, timeout_s: int) -> tuple[URL, str, str]:
    """The URL with its query, its text in messages, and the name that the certificate must be for."""
    service = client.get("service")
    if service is None:
        url = URL(client["url"]).with_query({"timeout": f"{timeout_s}s"})
        return url, str(url), url.host or ""
    name = f"{service['name']}.{service['namespace']}.svc"
    path = "/" + (service.get("path") or "").lstrip("/")
    url = URL.build(scheme="https", host=name, port=service.get("port", HTTPS_PORT), path=path)
    shown = f"https://{name}:{service.get('port', HTTPS_PORT)}{path}?timeout={timeout_s}s"
    return url.with_query({"timeout": f"{timeout_s}s"}), shown, name


def parse_review(body: bytes, kind: str, group: str, versions: Iterable[str]) -> Object:
    """The review in the body of a response; one without kind and apiVersion is left to the caller.

    Raises CallError for a body that is no object, and for another kind or version.
    """
    try:
        document = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        document = ""
    if not isinstance(document, dict):
        raise CallError(_NO_OBJECT)
    stated_kind, api_version = document.get("kind"), document.get("apiVersion")
    is_known = stated_kind == kind and api_version in {f"{group}/{version}" for version in versions}
    if stated_kind and api_version and not is_known:
        raise CallError(f'no kind "{stated_kind}" is registered for version "{api_version}" {_GO_SCHEME}')
    return document


def _status_text(status: int, body: bytes, content_type: str) -> str:
    """The message of client-go for a response that is no success."""
    try:
        message = msgspec.json.decode(body)["message"]
        if isinstance(message, str) and message:
            return message
    except (msgspec.MsgspecError, KeyError, TypeError, IndexError):
        pass
    text = body[:_BODY_MAX_CHARS].decode("utf-8", "replace").strip() if content_type.startswith("text/") else ""
    if status == 500:
        return f"an error on the server ({quoting.quoted(text or 'unknown')}) has prevented the request from succeeding"
    if status == 403:
        return text or "unknown"
    other = f"the server responded with the status code {status} but did not return more information"
    return _TEXT_BY_STATUS.get(status, other)


def _new_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
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
