"""Doing what a probe or a lifecycle hook says: an HTTP request, a connection, a command in the container.

`probe_loop` and `hooks` call `check`. Nothing here decides; the outcome says what happened, in the words that events
show. Every check is bounded by its timeout. HTTP is written by hand: a probe is one request on a connection of its own,
of whose answer only the first lines matter.

Source: Probe, HTTPGetAction, TCPSocketAction, ExecAction (API reference).
Differs: gRPC probes fail with a message that says that they are not supported.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_REDIRECTS: Final = 10
USER_AGENT: Final = "kube-probe/1.37"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a check; `text` explains a failure."""

    ok: bool
    text: str = ""


Execute = Callable[[tuple[str, ...], float], Awaitable[Outcome]]
"""Runs a command in the container, for at most so many seconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """The container that is checked.

    Attributes:
        address: the pod's address.
        ports: its ports by name.
        port_map: where a port that may not be bound really is.
    """

    address: str
    ports: Mapping[str, int]
    port_map: Mapping[int, int]
    execute: Execute


async def check(handler: Mapping[str, Any], target: Target, *, timeout_s: float) -> Outcome:
    """Do what `handler` (the part of a probe or hook with `exec`, `httpGet`, ...) says. Raises nothing on purpose."""
    if (action := handler.get("exec")) is not None:
        return await target.execute(tuple(action.get("command") or ()), timeout_s)
    if (action := handler.get("httpGet")) is not None:
        return await _http_get(action, target, timeout_s)
    if (action := handler.get("tcpSocket")) is not None:
        return await _tcp_socket(action, target, timeout_s)
    kinds = ", ".join(key for key in handler if isinstance(handler[key], dict))
    return Outcome(False, f"this kind of check is not supported: {kinds or 'none given'}")


def resolve_port(port: int | str, target: Target, *, own_address: bool) -> int | None:
    """The number that a port (number or name) stands for; None for a name that no port has."""
    number = port if isinstance(port, int) else target.ports.get(port)
    if number is None and str(port).isdigit():
        number = int(port)
    if number is None:
        return None
    return target.port_map.get(number, number) if own_address else number


async def _tcp_socket(action: Mapping[str, Any], target: Target, timeout_s: float) -> Outcome:
    host = action.get("host") or target.address
    port = resolve_port(action["port"], target, own_address=host == target.address)
    if port is None:
        return Outcome(False, f"couldn't find port {action['port']}")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Outcome(False, f"dial tcp {host}:{port}: i/o timeout")
    except OSError as error:
        return Outcome(False, f"dial tcp {host}:{port}: {_reason(error)}")
    writer.transport.abort()
    return Outcome(True)


async def _http_get(action: Mapping[str, Any], target: Target, timeout_s: float) -> Outcome:
    host = action.get("host") or target.address
    port = resolve_port(action["port"], target, own_address=host == target.address)
    if port is None:
        return Outcome(False, f"couldn't find port {action['port']}")
    path = action.get("path") or "/"
    url = f"{(action.get('scheme') or 'HTTP').lower()}://{host}:{port}{path if path.startswith('/') else '/' + path}"
    headers = [(entry["name"], entry.get("value", "")) for entry in action.get("httpHeaders") or []]
    try:
        async with asyncio.timeout(timeout_s):
            status = await _status_after_redirects(url, headers)
    except TimeoutError:
        return Outcome(False, f'Get "{url}": context deadline exceeded (the timeout is {timeout_s:g} s)')
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        return Outcome(False, f'Get "{url}": {_reason(error)}')
    if 200 <= status < 400:
        return Outcome(True)
    return Outcome(False, f"HTTP probe failed with statuscode: {status}")


async def _status_after_redirects(url: str, headers: list[tuple[str, str]]) -> int:
    """The status at the end of redirects; one to another host counts as the answer."""
    for _ in range(MAX_REDIRECTS):
        status, location = await _get(url, headers)
        if not (300 <= status < 400 and location):
            return status
        target = urljoin(url, location)
        if urlsplit(target).hostname != urlsplit(url).hostname:
            return status
        url = target
    raise ValueError(f"stopped after {MAX_REDIRECTS} redirects")


async def _get(url: str, headers: list[tuple[str, str]]) -> tuple[int, str]:
    """Status and Location of one GET."""
    parts = urlsplit(url)
    context = _anyones_certificate() if parts.scheme == "https" else None
    port = parts.port or (443 if context else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=context, limit=MAX_HEADER_BYTES)
    try:
        writer.write(_request(parts.netloc, parts.path or "/", parts.query, headers))
        head = await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.transport.abort()
    return _status_and_location(head)


def _request(host: str, path: str, query: str, headers: list[tuple[str, str]]) -> bytes:
    given = {name.lower() for name, _ in headers}
    defaults = [("Host", host), ("User-Agent", USER_AGENT), ("Accept", "*/*"), ("Connection", "close")]
    lines = [(name, value) for name, value in defaults if name.lower() not in given] + headers
    target = f"{path}?{query}" if query else path
    text = f"GET {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
    return text.encode("utf-8")


def _status_and_location(head: bytes) -> tuple[int, str]:
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        raise ValueError(f"malformed HTTP response {first[:80]!r}")
    named = (line.partition(":") for line in rest)
    location = next((value.strip() for name, _, value in named if name.lower() == "location"), "")
    return int(words[1]), location


def _anyones_certificate() -> ssl.SSLContext:
    """Probes do not verify certificates (as documented for HTTPGetAction)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, asyncio.IncompleteReadError):
        return "EOF"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
