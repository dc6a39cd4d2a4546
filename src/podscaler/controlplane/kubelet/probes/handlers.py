"""Carries out the handler of a probe or lifecycle hook: `httpGet`, `tcpSocket` or `exec`.

`kubelet.node_agent` makes one `HandlerRunner` and injects its `run`, which `kubelet.containers.container_run` calls.
The outcome has the text that events show. Each call is bounded by its timeout.

A new kind of handler: a case in `HandlerRunner.run`.

Source: Probe, LifecycleHandler, HTTPGetAction, TCPSocketAction, ExecAction (API reference); pkg/probe and
pkg/kubelet/lifecycle (kubelet).
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
"""Whether the handler is that of a probe or of a lifecycle hook."""

PORT_MAX: Final = 65_535
USER_AGENTS: Final[Mapping[Purpose, str]] = {"probe": "kube-probe/1.37", "lifecycle": "kube-lifecycle/1.37"}


@dataclass(frozen=True, slots=True)
class HandlerOutcome:
    """Whether a handler succeeded; `text` explains a failure, `warning` qualifies a success."""

    ok: bool
    text: str = ""
    warning: str = ""


Execute = Callable[[tuple[str, ...], float], Awaitable[HandlerOutcome]]
"""Runs a command (program and arguments) in the container within a timeout in seconds. Raises OSError (no pipe)."""


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """The container whose handler is run.

    Attributes:
        address: the pod's IP address.
        ports: the container's named ports: name -> containerPort.
        port_map: declared port -> the port that is bound in its place, for ports that may not be bound.
        execute: runs commands of `exec` handlers.
    """

    address: str
    ports: Mapping[str, int]
    port_map: Mapping[int, int]
    execute: Execute


class HandlerRunner:
    """Runs the handlers of all containers of a node; they share an HTTP client, which `close` closes."""

    def __init__(self) -> None:
        self._http = HttpClient()

    async def run(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> HandlerOutcome:
        """Run the handler and return its outcome; failures and timeouts are outcomes, too. Raises OSError (no pipe).

        Args:
            handler: a core/v1 Probe or LifecycleHandler. Its `sleep` is not carried out here (`container_run`).
            purpose: any HTTP response to a hook is a success; to a probe, a status from 200 to 399 is one.
        """
        if (action := handler.get("exec")) is not None:
            return await target.execute(tuple(action.get("command") or ()), timeout_s)
        if (action := handler.get("httpGet")) is not None:
            return await self._http_get(action, target, timeout_s, purpose)
        if (action := handler.get("tcpSocket")) is not None:
            return await _tcp_socket(action, target, timeout_s)
        # other fields, such as periodSeconds, are numbers
        kinds = ", ".join(key for key in handler if isinstance(handler[key], dict))
        return HandlerOutcome(False, f"this kind of handler is not supported: {kinds or 'none given'}")

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._http.close()

    async def _http_get(
        self, action: Mapping[str, Any], target: HandlerTarget, timeout_s: float, purpose: Purpose
    ) -> HandlerOutcome:
        """The outcome of an HTTP request; hooks accept every response."""
        host, port = _host_and_port(action, target)
        if port is None:
            return HandlerOutcome(False, f"couldn't find port {action['port']}")
        quoted_url = _quoted_url(action, host, port)
        try:
            request = http_check.make_request(action, host, port, user_agent=USER_AGENTS[purpose])
            async with asyncio.timeout(timeout_s):
                response = await self._http.get(request)
        except TimeoutError:
            return HandlerOutcome(
                False, f"Get {quoted_url}: context deadline exceeded (the timeout is {timeout_s:g} s)"
            )
        except (OSError, ValueError, aiohttp.ClientError) as error:
            return HandlerOutcome(False, f"Get {quoted_url}: {_failure_reason(error)}")
        return HandlerOutcome(True) if purpose == "lifecycle" else _http_outcome(response)


def _quoted_url(action: Mapping[str, Any], host: str, port: int) -> str:
    """The URL of a core/v1 HTTPGetAction in quotes, as messages show it, even where it is not a valid URL."""
    path = action.get("path") or "/"
    scheme = "https" if action.get("scheme") == "HTTPS" else "http"
    url = f"{scheme}://{host}:{port}{path if path.startswith('/') else '/' + path}"
    return f'"{url}"' if url.isprintable() else ascii(url)


def _http_outcome(response: ProbeResponse) -> HandlerOutcome:
    """The outcome of a probe with this response: a success for a status from 200 to 399."""
    if 300 <= response.status < 400:
        return HandlerOutcome(True, warning=f"Probe terminated redirects, Response body: {response.body}")
    if 200 <= response.status < 300:
        return HandlerOutcome(True)
    return HandlerOutcome(False, f"HTTP probe failed with statuscode: {response.status}")


def resolve_port(port: int | str, target: HandlerTarget, *, is_pod_address: bool) -> int | None:
    """The number of a port (number, or name of a container's port); None for an unknown name or an invalid number.

    Args:
        port: a name that is no name of `target.ports` may be a number in decimal digits.
        is_pod_address: whether the request goes to the pod's address, where `target.port_map` applies.
    """
    port_number = port if isinstance(port, int) else target.ports.get(port)
    if port_number is None and str(port).isdecimal() and str(port).isascii():
        port_number = int(port)
    if port_number is None or not 0 < port_number <= PORT_MAX:
        return None
    return target.port_map.get(port_number, port_number) if is_pod_address else port_number


def _host_and_port(action: Mapping[str, Any], target: HandlerTarget) -> tuple[str, int | None]:
    """Host and port of a core/v1 HTTPGetAction or TCPSocketAction; the port is None if there is no such port."""
    host = action.get("host") or target.address
    return host, resolve_port(action["port"], target, is_pod_address=host == target.address)


async def _tcp_socket(action: Mapping[str, Any], target: HandlerTarget, timeout_s: float) -> HandlerOutcome:
    """The outcome of a connection, which is closed at once."""
    host, port = _host_and_port(action, target)
    if port is None:
        return HandlerOutcome(False, f"couldn't find port {action['port']}")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return HandlerOutcome(False, f"dial tcp {host}:{port}: i/o timeout")
    except (OSError, ValueError) as error:
        return HandlerOutcome(False, f"dial tcp {host}:{port}: {_failure_reason(error)}")
    writer.transport.abort()
    return HandlerOutcome(True)


def _failure_reason(error: Exception) -> str:
    """The reason of a failed request or connection in the words of Go, as events of kubelet have it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return _failure_reason(error.os_error)
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
