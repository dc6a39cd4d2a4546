"""The dashboard of a real process for tests: its address and login link as it prints them, and a browser's requests."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from up_process import Up

from patience import WITHIN_S


class DashboardPage:
    """A logged-in browser: the address and the cookie."""

    def __init__(self, output: IO[str]) -> None:
        address = _line(output, "the dashboard is at ")
        token = _line(output, "this link logs in once: ").partition("#token=")[2]
        self._host = urlsplit(address).netloc
        self._cookie = ""
        status, headers, _ = self._send("POST", "/login", {"token": token})
        assert status == 200
        self._cookie = headers["Set-Cookie"].partition(";")[0]

    def get(self, path: str) -> tuple[int, Any]:
        """The status and the JSON of the response."""
        status, _, body = self._send("GET", path)
        return status, body

    def post(self, path: str, value: Any) -> tuple[int, Any]:
        """The status and the JSON of the response."""
        status, _, body = self._send("POST", path, value)
        return status, body

    def events(self, query: str) -> Iterator[tuple[str, Any]]:
        """The server-sent events, until the caller stops."""
        connection = http.client.HTTPConnection(self._host, timeout=WITHIN_S)
        try:
            connection.request("GET", f"/api/stream{query}", headers={"Cookie": self._cookie})
            response, name = connection.getresponse(), ""
            while line := response.readline().decode():
                field, _, value = line.rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)
        finally:
            connection.close()

    def _send(self, method: str, path: str, value: Any = None) -> tuple[int, http.client.HTTPMessage, Any]:
        connection = http.client.HTTPConnection(self._host, timeout=WITHIN_S)
        try:
            headers = {"Content-Type": "application/json", "Cookie": self._cookie}
            connection.request(method, path, None if value is None else json.dumps(value), headers)
            response = connection.getresponse()
            return response.status, response.headers, json.loads(response.read())
        finally:
            connection.close()


class DashboardProcess:
    """One `podscaler dashboard` on the cluster of an `up`.

    Args:
        up: the cluster.
        flags: further flags.
        kubeconfig: of its user; None: of the administrator.
    """

    def __init__(self, up: Up, *flags: str, kubeconfig: Path | None = None) -> None:
        config = str(kubeconfig or up.kubeconfig)
        command = [sys.executable, "-m", "podscaler", "dashboard", "--kubeconfig", config, *flags]
        with (up.data_dir.parent / "dashboard.log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)
        assert self._process.stdout is not None
        self.page = DashboardPage(self._process.stdout)

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(timeout=WITHIN_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status


def _line(output: IO[str], beginning: str) -> str:
    """The rest of the next line that begins so."""
    for line in output:
        if line.startswith(beginning):
            return line.removeprefix(beginning).rstrip("\n")
    raise AssertionError(f"no line begins with {beginning!r}")
