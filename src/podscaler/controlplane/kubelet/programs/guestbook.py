"""`agnhost guestbook`: stores texts by keys, with replicas, or sends requests on to primary and replica (the frontend).

`programs.agnhost` calls `main`. A replica registers at its primary at the start, gets the texts of the primary, and
every text that is set there later. The frontend reaches both by the names of their Services.

Source: test/images/agnhost/guestbook of Kubernetes v1.37 (flags, paths, texts, names of the Services).
"""

import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error_response, serve

SERVICES: Final = {"get": "agnhost-replica", "set": "agnhost-primary"}
"""The command of a request to the frontend -> the Service that it is sent to."""
REQUEST_S: Final = 5.0
"""The timeout of a request to another process."""
REGISTER_S: Final = 60.0
"""How long a replica tries to register, with PAUSE_S between the tries."""
PAUSE_S: Final = 1.0
RESPONSE_BYTES_MAX: Final = 1024 * 1024

Send = Callable[[str, str, Mapping[str, str]], str]
"""Host, path and parameters of a GET request -> the body of the response. Raises OSError, HTTPException."""


def sender(port: int) -> Send:
    """A function that sends GET requests to a port."""

    def send(host: str, path: str, parameters: Mapping[str, str]) -> str:
        connection = http.client.HTTPConnection(host, port, timeout=REQUEST_S)
        try:
            connection.request("GET", f"{path}?{urlencode(parameters)}")
            return connection.getresponse().read(RESPONSE_BYTES_MAX).decode("utf-8", "replace")
        finally:
            connection.close()

    return send


class Guestbook:
    """The responses to requests; may be called from several threads."""

    def __init__(self, send: Send) -> None:
        """Begin without texts and replicas; `send` sends requests to other processes."""
        self._send = send
        self._texts: dict[str, str] = {}
        self._replicas: list[str] = []
        self._lock = threading.Lock()

    def register(self, primary: str) -> None:
        """Become a replica of `primary`. Raises OSError, HTTPException, ValueError if it does not succeed."""
        own_address = os.environ.get("POD_IP", "127.0.0.1")  # not that to listen on, which may be all addresses
        response = json.loads(self._send(primary, "/register", {"host": own_address}))
        texts = response.get("data") if isinstance(response, dict) else None
        if not isinstance(texts, dict):
            raise ValueError("the response of the primary has no data")
        with self._lock:
            self._texts.update({str(key): str(value) for key, value in texts.items()})

    def respond(self, request: WebRequest) -> WebResponse:
        """The response to a request. A new path: an entry of `endpoints`."""
        endpoints = {
            "/register": self._add_replica,
            "/get": self._get_text,
            "/set": self._set_text,
            "/guestbook": self._forward_command,
        }
        endpoint = endpoints.get(request.path)
        return endpoint(request.form) if endpoint else error_response("404 page not found", 404)

    def _add_replica(self, form: Mapping[str, str]) -> WebResponse:
        """Add a replica; the response has all texts."""
        with self._lock:
            self._replicas.append(form.get("host", ""))
            return _json_response({"data": self._texts})

    def _get_text(self, form: Mapping[str, str]) -> WebResponse:
        """The text of a key, or all texts without one."""
        key = form.get("key", "")
        with self._lock:
            return _json_response({"data": self._texts.get(key, "") if key else self._texts})

    def _set_text(self, form: Mapping[str, str]) -> WebResponse:
        """Store a text and send it to all replicas; 417 at the first one that cannot be reached."""
        key, value = form.get("key", ""), form.get("value", "")
        if not key:
            return error_response("cannot set with empty key.", 400)
        with self._lock:
            self._texts[key] = value
            replicas = list(self._replicas)
        for replica in replicas:
            try:
                self._send(replica, "/set", {"key": key, "value": value})
            except (OSError, http.client.HTTPException) as failure:
                return error_response(f"encountered error while propagating to replica '{replica}': {failure}", 417)
        return _json_response({"message": "Updated"})

    def _forward_command(self, form: Mapping[str, str]) -> WebResponse:
        """Send a command of the frontend on to the Service of SERVICES that carries it out."""
        command = form.get("cmd", "").lower()
        if command not in SERVICES:
            return error_response(f"unsupported cmd: '{command}'", 400)
        key, value = form.get("key", ""), form.get("value", "")
        if command == "set" and not key:
            return error_response("cannot set with empty key.", 400)
        try:
            return WebResponse(self._send(SERVICES[command], f"/{command}", {"key": key, "value": value}))
        except (OSError, http.client.HTTPException) as failure:
            return error_response(f"encountered error: {failure}", 417)


def _json_response(body: Mapping[str, object]) -> WebResponse:
    return WebResponse(json.dumps(body, separators=(",", ":")))


def register_in_time(guestbook: Guestbook, primary: str, *, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Register at `primary`, and try again for REGISTER_S seconds; returns whether it succeeded."""
    for _ in range(int(REGISTER_S / PAUSE_S)):
        try:
            guestbook.register(primary)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            print(f"encountered error while registering to primary: {failure}", file=sys.stderr, flush=True)
            sleep(PAUSE_S)
        else:
            return True
    return False


def main(args: Sequence[str]) -> int:
    """Serve texts; returns the exit status, 1 where the port cannot be bound or the primary is not reached."""
    parser = ArgumentParser(prog="guestbook")
    parser.add_flag("http-port", 80)
    parser.add_flag("backend-port", 6379)
    parser.add_flag("replicaof", "")
    options = parser.parse_args(args)
    guestbook = Guestbook(sender(options.backend_port))
    if options.replicaof and not register_in_time(guestbook, options.replicaof):
        return 1
    return serve(guestbook.respond, options.http_port)
