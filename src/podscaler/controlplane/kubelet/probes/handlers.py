"""Doing what a probe or a lifecycle hook says: an HTTP request, a connection, a command in the container.

`probe_loop` and `container_run` call `Checks.check`. Nothing here decides; the outcome says what happened, in the words
that events show. Every check is bounded by its timeout.

Source: Probe, HTTPGetAction, TCPSocketAction, ExecAction (API reference); the kubelet's probers and handler runner.
Differs: gRPC probes fail with a message that says that they are not supported.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import aiohttp

from podscaler.controlplane.kubelet.probes import http_check
from podscaler.controlplane.kubelet.probes.http_check import HttpClient, ProbeResponse

Purpose = Literal["probe", "lifecycle"]
"""What a check is for; kubelet's user agents are named so."""

PORT_MAX: Final = 65_535
USER_AGENTS: Final[Mapping[Purpose, str]] = {"probe": "kube-probe/1.37", "lifecycle": "kube-lifecycle/1.37"}


@dataclass(frozen=True, slots=True)
class HandlerOutcome:
    """What came of a check; `text` explains a failure, `warning` what is odd about a success."""

    ok: bool
    text: str = ""
    warning: str = ""


Execute = Callable[[tuple[str, ...], float], Awaitable[HandlerOutcome]]
"""Runs a command in the container, for at most so many seconds."""


@dataclass(frozen=True, slots=True)
class HandlerTarget:
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


class Checks:
    """All checks of a node; `close` it at the end."""

    def __init__(self) -> None:
        self._http = HttpClient()

    async def check(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> HandlerOutcome:
        """Do what `handler` (the part of a probe or hook with `exec`, `httpGet`, ...) says. Raises nothing on purpose.

        Any answer to the HTTP request of a hook is a success, as it is to kubelet.
        """
        if (action := handler.get("exec")) is not None:
            return await target.execute(tuple(action.get("command") or ()), timeout_s)
        if (action := handler.get("httpGet")) is not None:
            return await self._http_get(action, target, timeout_s, purpose)
        if (action := handler.get("tcpSocket")) is not None:
            return await _tcp_socket(action, target, timeout_s)
        kinds = ", ".join(key for key in handler if isinstance(handler[key], dict))
        return HandlerOutcome(False, f"this kind of check is not supported: {kinds or 'none given'}")

    async def close(self) -> None:
        """Close what is open."""
        await self._http.close()

    async def _http_get(
        self, action: Mapping[str, Any], target: HandlerTarget, timeout_s: float, purpose: Purpose
    ) -> HandlerOutcome:
        host = action.get("host") or target.address
        port = resolve_port(action["port"], target, own_address=host == target.address)
        if port is None:
            return HandlerOutcome(False, f"couldn't find port {action['port']}")
        shown = _shown(action, host, port)
        try:
            request = http_check.request(action, host, port, user_agent=USER_AGENTS[purpose])
            async with asyncio.timeout(timeout_s):
                response = await self._http.get(request)
        except TimeoutError:
            return HandlerOutcome(False, f"Get {shown}: context deadline exceeded (the timeout is {timeout_s:g} s)")
        except (OSError, ValueError, aiohttp.ClientError) as error:
            return HandlerOutcome(False, f"Get {shown}: {_reason(error)}")
        return HandlerOutcome(True) if purpose == "lifecycle" else _judged(response)


def _shown(action: Mapping[str, Any], host: str, port: int) -> str:
    """The URL as messages name it, also where there can be no such URL."""
    path = action.get("path") or "/"
    scheme = "https" if action.get("scheme") == "HTTPS" else "http"
    text = f"{scheme}://{host}:{port}{path if path.startswith('/') else '/' + path}"
    return f'"{text}"' if text.isprintable() else ascii(text)


def _judged(response: ProbeResponse) -> HandlerOutcome:
    if 300 <= response.status < 400:
        return HandlerOutcome(True, warning=f"Probe terminated redirects, Response body: {response.body}")
    if 200 <= response.status < 300:
        return HandlerOutcome(True)
    return HandlerOutcome(False, f"HTTP probe failed with statuscode: {response.status}")


def resolve_port(port: int | str, target: HandlerTarget, *, own_address: bool) -> int | None:
    """The number that a port (number or name) stands for; None for a name that no port has."""
    number = port if isinstance(port, int) else target.ports.get(port)
    if number is None and str(port).isdecimal() and str(port).isascii():
        number = int(port)
    if number is None or not 0 < number <= PORT_MAX:
        return None
    return target.port_map.get(number, number) if own_address else number


async def _tcp_socket(action: Mapping[str, Any], target: HandlerTarget, timeout_s: float) -> HandlerOutcome:
    host = action.get("host") or target.address
    port = resolve_port(action["port"], target, own_address=host == target.address)
    if port is None:
        return HandlerOutcome(False, f"couldn't find port {action['port']}")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return HandlerOutcome(False, f"dial tcp {host}:{port}: i/o timeout")
    except (OSError, ValueError) as error:
        return HandlerOutcome(False, f"dial tcp {host}:{port}: {_reason(error)}")
    writer.transport.abort()
    return HandlerOutcome(True)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return _reason(error.os_error)
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"malformed HTTP response: {error.message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
