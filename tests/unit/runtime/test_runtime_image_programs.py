"""The programs that the images busybox and agnhost bring, for machines that have none: wget and nc."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from podscaler.controlplane.kubelet.launching import images


class Handler(BaseHTTPRequestHandler):
    """Says `OK!`, but for /missing."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()
        self.wfile.write(b"OK!")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """A web server."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def run_program(name: str, folder: Path, *args: str, sent: str = "") -> tuple[int, str, str]:
    """Exit status, output and errors of a program that was written, with this standard input."""
    images.write_programs(folder / "programs")
    done = subprocess.run(
        [name, *args],
        executable=folder / "programs" / name,
        input=sent,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def wget(folder: Path, *args: str) -> tuple[int, str, str]:
    """What `wget` does."""
    return run_program("wget", folder, *args)


def test_to_standard_output(tmp_path: Path, url: str) -> None:
    """The walkthrough's `wget -q -O- http://...` prints the answer and nothing else."""
    assert wget(tmp_path, "-q", "-O-", f"http://{url}") == (0, "OK!", "")


def test_to_a_file(tmp_path: Path, url: str) -> None:
    """Without -O the answer is a file with the name of the URL's end."""
    assert wget(tmp_path, f"{url}/some/page") == (0, "", "")
    assert (tmp_path / "page").read_text() == "OK!"


def test_failures(tmp_path: Path, url: str) -> None:
    """What cannot be fetched is told as busybox does, with exit status 1."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert wget(tmp_path, "-O-", f"http://{url}/missing") == (
        1,
        "",
        "wget: server returned error: HTTP/1.1 404 Not Found\n",
    )
    assert wget(tmp_path, "-O-", f"http://127.0.0.1:{port}") == (
        1,
        "",
        "wget: can't connect to remote host (127.0.0.1): Connection refused\n",
    )
    assert wget(tmp_path, "-T", "abc", f"http://{url}") == (1, "", "wget: invalid number 'abc'\n")


def nc(folder: Path, *args: str, sent: str = "") -> tuple[int, str, str]:
    """What `nc` does."""
    return run_program("nc", folder, *args, sent=sent)


def test_nc_sends_and_prints(tmp_path: Path, url: str) -> None:
    """Standard input is sent, and the response printed until the server closes."""
    host, port = url.split(":")
    code, output, errors = nc(tmp_path, "-v", "-t", "-w", "5", host, port, sent="GET / HTTP/1.0\r\n\r\n")
    assert (code, errors) == (0, f"Connection to {host} {port} port succeeded!\n")
    assert output.splitlines()[0].startswith("HTTP/1.0 200")
    assert output.endswith("OK!")


def test_nc_connects_only(tmp_path: Path, url: str) -> None:
    """`-z` sends nothing; a port where nobody listens is an error."""
    host, port = url.split(":")
    assert nc(tmp_path, "-z", host, port) == (0, "", "")
    with socket.create_server((host, 0)) as server:
        closed = str(server.getsockname()[1])
    assert nc(tmp_path, "-z", host, closed) == (1, "", f"nc: connect to {host} port {closed}: Connection refused\n")


def test_nc_over_udp(tmp_path: Path) -> None:
    """A datagram is sent, and the reply printed until nothing more arrives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def reply() -> None:
            data, client = server.recvfrom(100)
            server.sendto(data.upper(), client)

        thread = threading.Thread(target=reply)
        thread.start()
        assert nc(tmp_path, "-u", "-w", "1", "127.0.0.1", str(server.getsockname()[1]), sent="hello") == (
            0,
            "HELLO",
            "",
        )
        thread.join()


def test_nc_without_a_port(tmp_path: Path) -> None:
    """The usage is printed."""
    assert nc(tmp_path, "127.0.0.1") == (1, "", "usage: nc [-tuvz] [-w SECONDS] HOST PORT\n")


def test_applets_of_busybox(tmp_path: Path) -> None:
    """Each is a link to the machine's busybox, but for those of podscaler's own."""
    busybox = tmp_path / "busybox"
    busybox.write_text("#!/bin/sh\nprintf '[\\nnc\\nnslookup\\n../up\\n'\n")
    busybox.chmod(0o700)
    for _ in range(2):
        images.write_programs(tmp_path / "programs", str(busybox))
    found = {file.name: file.is_symlink() for file in (tmp_path / "programs").iterdir()}
    assert found == {"[": True, "nslookup": True, "wget": False, "nc": False}


def test_a_busybox_that_lists_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log says so, and podscaler's own programs are there."""
    images.write_programs(tmp_path / "programs", "/bin/false")
    assert {file.name for file in (tmp_path / "programs").iterdir()} == {"wget", "nc"}
    assert "the applets of /bin/false are not in the images busybox and agnhost" in caplog.text
