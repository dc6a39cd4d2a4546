"""`agnhost netexec`: an HTTP and a UDP server with endpoints that network tests use.

`programs.agnhost` calls `main`. The endpoints are the keys of `Netexec._endpoints`, the commands of the UDP server the
cases of `datagram_response`.

Source: test/images/agnhost/netexec of Kubernetes v1.37 (endpoints, flags, messages).

As upstream, endpoints respond to most invalid parameters with status 200 and the text of the error.

Differs: no /upload; the flags sctp-port and udp-listen-addresses have no effect; commands of /shell end after SHELL_S,
/exit waits for WAIT_MAX_S, and /dial sends DIALS_MAX requests at most.
"""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser, parse_duration, parse_int
from podscaler.controlplane.kubelet.programs.web_server import (
    WebRequest,
    WebResponse,
    error_response,
    host_name,
    listen_address,
    serve,
)

DIAL_S: Final = 5.0
"""The timeout of one request to another server."""
DIALS_MAX: Final = 1000
SHELL_S: Final = 60.0
WAIT_MAX_S: Final = 3600.0
"""The longest `wait` of /exit; a longer one is cut."""
DATAGRAM_BYTES: Final = 2048


@dataclass(slots=True)
class ServerState:
    """What the endpoints report of the server.

    Attributes:
        http_port: the port of the HTTP server.
        is_ready: whether the UDP server runs.
        is_ending: whether SIGTERM was received.
    """

    http_port: int
    is_ready: bool = False
    is_ending: bool = False


LOGGED_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "/dial": ("host", "protocol", "port", "request", "tries"),
    "/echo": ("msg", "code"),
    "/envvar": ("var",),
    "/exit": ("code", "timeout", "wait"),
    "/shell": ("cmd",),
}
"""Path -> the parameters that its line of the log has; upstream's tests look for them."""


class Netexec:
    """Responds to the requests. A new endpoint: an entry of `_endpoints`, and of LOGGED_PARAMETERS.

    Args:
        exit_process: ends the process with a status; sys.exit would end the thread of the request alone.
    """

    def __init__(self, state: ServerState, exit_process: Callable[[int], None] = os._exit) -> None:
        self._state = state
        self._exit = exit_process
        self._endpoints: dict[str, Callable[[WebRequest], WebResponse]] = {
            "/clientip": _client_address,
            "/dial": dial,
            "/echo": _echo,
            "/envvar": _environment_variable,
            "/exit": self._exit_after,
            "/header": _header,
            "/healthz": self._health,
            "/hostname": _host_name,
            "/hostName": _host_name,
            "/readyz": self._readiness,
            "/redirect": _redirect,
            "/serverport": self._server_port,
            "/shell": _shell,
            "/shutdown": self._shut_down,
        }

    def respond(self, request: WebRequest) -> WebResponse:
        """The response of an endpoint; every other path gets the time. The request is logged."""
        endpoint = self._endpoints.get(request.path)
        print(logged_line(request, is_known=endpoint is not None), flush=True)
        if endpoint is None:
            return WebResponse(f"NOW: {time.strftime('%Y-%m-%d %H:%M:%S %z %Z')}")
        return endpoint(request)

    def _health(self, _request: WebRequest) -> WebResponse:
        """200 while the UDP server runs, else 412."""
        return WebResponse("", 200 if self._state.is_ready else 412)

    def _server_port(self, _request: WebRequest) -> WebResponse:
        return WebResponse(str(self._state.http_port))

    def _shut_down(self, _request: WebRequest) -> WebResponse:
        """Exit with status 0 after the response."""
        return WebResponse("", on_sent=lambda: self._exit(0))

    def _readiness(self, _request: WebRequest) -> WebResponse:
        """200 while the UDP server runs, 503 once SIGTERM was received, else 412."""
        if self._state.is_ending:
            return WebResponse("shutting down", 503)
        return WebResponse("ok") if self._state.is_ready else WebResponse("", 412)

    def _exit_after(self, request: WebRequest) -> WebResponse:
        """Exit with the status `code` after `wait`: before the response, or after it with any `timeout`."""
        delays_s: dict[str, float] = {}
        for name in ("timeout", "wait"):
            duration = request.form.get(name) or "0"
            delay_s = parse_duration(duration)
            if delay_s is None:
                message = f"argument '{name}' must be a valid golang duration or empty, got \"{duration}\"\n"
                return WebResponse(message)
            delays_s[name] = delay_s
        code = request.form.get("code", "")
        status = parse_int(code) if code else 0
        if status is None:
            return WebResponse(f"argument 'code' must be an integer [0-127] or empty, got \"{code}\"\n")
        time.sleep(min(delays_s["wait"], WAIT_MAX_S))
        if not delays_s["timeout"]:
            self._exit(status)  # does not return, but in tests
        return WebResponse("", on_sent=lambda: self._exit(status))


def logged_line(request: WebRequest, *, is_known: bool) -> str:
    """The line of the log about a request: `GET /echo?msg=hello&code=`; unknown paths are `GET /`."""
    names = LOGGED_PARAMETERS.get(request.path, ())
    parameters = "&".join(f"{name}={request.form.get(name, '')}" for name in names)
    line = f"GET {request.path if is_known else '/'}" + (f"?{parameters}" if names else "")
    return line.replace("\r", "\\r").replace("\n", "\\n")


def _client_address(request: WebRequest) -> WebResponse:
    """The address and port of the client."""
    host, port = request.client
    return WebResponse(f"{host}:{port}")


def _host_name(_request: WebRequest) -> WebResponse:
    return WebResponse(host_name())


def _echo(request: WebRequest) -> WebResponse:
    """The parameter `msg` with the status `code`."""
    code = request.form.get("code", "")
    status = parse_int(code) if code else 200
    if status is None or not 100 <= status <= 999:
        return WebResponse(f"argument 'code' must be an integer or empty, got \"{code}\"\n")
    return WebResponse(request.form.get("msg", ""), status)


def _environment_variable(request: WebRequest) -> WebResponse:
    """The value of the environment variable `var`."""
    name = request.form.get("var", "")
    if not name:
        return error_response("'var' query parameter is required", 400)
    if name not in os.environ:
        return error_response(f'env var "{name}" is not set', 500)
    return WebResponse(os.environ[name])


def _header(request: WebRequest) -> WebResponse:
    """The value of the request's header `key`, or all its headers as JSON without that parameter."""
    name = request.form.get("key", "")
    if name:
        return WebResponse(request.headers.get(name, ""))
    names = dict.fromkeys(name.title() for name in request.headers)
    return WebResponse(json.dumps({name: request.headers.get_all(name) for name in names if name != "Host"}))


def _redirect(request: WebRequest) -> WebResponse:
    """A redirect to `location` with the status `code`, by default 302."""
    code = request.form.get("code", "")
    status = parse_int(code) if code else 302
    if status is None or not 300 <= status <= 399:
        return WebResponse(f"argument 'code' must be an integer or empty, got \"{code}\"\n")
    location = quote(request.form.get("location", ""), safe=":/?#[]@!$&'()*+,;=%-._~")
    return WebResponse("", status, {"Location": location})


def _shell(request: WebRequest) -> WebResponse:
    """Run a command of the caller; the response has its output, and an error if it failed."""
    command = request.form.get("shellCommand") or request.form.get("cmd", "")
    result_json: dict[str, str] = {}
    try:
        completed = subprocess.run(  # noqa: S603  the endpoint is for commands of its caller, in the pod's own processes
            ["/bin/sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SHELL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return WebResponse(json.dumps({"error": str(failure)}))
    if completed.stdout:
        result_json["output"] = completed.stdout.decode("utf-8", "replace")
    if completed.returncode:
        result_json["error"] = f"exit status {completed.returncode}"
    return WebResponse(json.dumps(result_json))


def dial(request: WebRequest) -> WebResponse:
    """Send requests to another server; the response has their responses and errors as JSON.

    A new protocol: an entry of the table from which `dialer` comes.
    """
    form = {name: values[0] for name, values in parse_qs(request.query, keep_blank_values=True).items()}  # no body
    tries = parse_int(form.get("tries") or "1")
    if tries is None or tries > DIALS_MAX:
        return error_response(
            f'tries parameter is invalid. strconv.Atoi: parsing "{form.get("tries")}": invalid syntax', 400
        )
    if not form.get("request"):
        return error_response("request parameter not specified. <nil>", 400)
    protocol = form.get("protocol", "").lower() or "http"
    dialer = {"http": dial_http, "udp": dial_udp}.get(protocol)
    if dialer is None:
        return error_response(f"unsupported protocol. {protocol}", 400)
    host, port = form.get("host", ""), parse_int(form.get("port", ""))
    if port is None:
        return error_response("host and/or port param are invalid. invalid port", 400)
    responses, errors = [], []
    for _ in range(tries):
        try:
            responses.append(dialer(host, port, form["request"]))
        except (OSError, http.client.HTTPException) as failure:
            errors.append(str(failure))
    outcomes = {"responses": responses} if any(responses) else {}  # upstream leaves out empty responses
    return WebResponse(json.dumps(outcomes | ({"errors": errors} if errors else {})))


def dial_http(host: str, port: int, request: str) -> str:
    """The body of `GET /REQUEST`. Raises OSError, HTTPException."""
    connection = http.client.HTTPConnection(host, port, timeout=DIAL_S)
    try:
        connection.request("GET", f"/{request}")
        return connection.getresponse().read().decode("utf-8", "replace")
    finally:
        connection.close()


def dial_udp(host: str, port: int, request: str) -> str:
    """Send the request in a datagram, and return the text of the first one that comes back. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(DIAL_S)
        connection.connect((host, port))
        connection.send(request.encode())
        return connection.recv(DATAGRAM_BYTES).decode("utf-8", "replace")


def datagram_response(datagram: str, client: tuple[str, int], port: int) -> str | None:
    """The response to a command of the UDP server on `port`, None for an unknown command.

    Args:
        datagram: the command with its argument. A new command: a case here.
        client: address and port of the client.
    """
    command, _, argument = datagram.strip().partition(" ")
    match command.lower():
        case "hostname":
            return host_name()
        case "clientip":
            host, client_port = client
            return f"{host}:{client_port}"
        case "serverport":
            return str(port)
        case "echo":
            return argument.lower()
        case "envvar":
            return os.environ.get(argument.strip(), "")
    return None


def serve_datagrams(port: int, state: ServerState) -> None:
    """Serve UDP until the process ends; `state` is ready from then on. Ends the process where it cannot be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind((listen_address(), port))
        except OSError as failure:
            print(f"listen udp {listen_address()}:{port}: {failure.strerror}", flush=True)
            os._exit(1)
        state.is_ready = True
        while True:
            datagram, client = server.recvfrom(DATAGRAM_BYTES)
            response = datagram_response(datagram.decode("utf-8", "replace"), client, port)
            if response is not None:
                server.sendto(response.encode(), client)


def fixed_responder(netexec: Netexec, target: str) -> Callable[[WebRequest], WebResponse]:
    """A function that responds to every request as to `GET target`."""
    url = urlsplit(target)
    form = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}

    def respond(request: WebRequest) -> WebResponse:
        return netexec.respond(replace(request, method="GET", path=url.path, query=url.query, form=form))

    return respond


def end_on_signal(state: ServerState, delay_s: float) -> None:
    """Make SIGTERM end the process after a delay of `delay_s` seconds, during which it is not ready."""

    def begin_to_end(*_: object) -> None:
        state.is_ending = True
        timer = threading.Timer(delay_s, os._exit, (0,))
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, begin_to_end)


def main(args: Sequence[str]) -> int:
    """Serve; returns the exit status."""
    parser = ArgumentParser(prog="netexec")
    for name, default in {"http-port": 8080, "udp-port": 8081, "sctp-port": -1, "delay-shutdown": 0}.items():
        parser.add_flag(name, default)
    for name in ("tls-cert-file", "tls-private-key-file", "http-override", "udp-listen-addresses"):
        parser.add_flag(name, "")
    options = parser.parse_args(args)
    state = ServerState(options.http_port)
    end_on_signal(state, options.delay_shutdown)
    if options.udp_port != -1:
        threading.Thread(target=serve_datagrams, args=(options.udp_port, state), daemon=True).start()
    netexec = Netexec(state)
    respond = fixed_responder(netexec, options.http_override) if options.http_override else netexec.respond
    context = None
    if options.tls_cert_file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file or None)
    return serve(respond, options.http_port, tls_context=context)
