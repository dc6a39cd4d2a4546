"""The autoscaler of a real `up` shows its metrics and its health where it is asked to."""

import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from up_process import QUICK, Up, eventually

from own_ports import own_place
from patience import COMMAND_WITHIN_S, WITHIN_S

pytestmark = pytest.mark.e2e

COUNTED = re.compile(r'^rest_client_requests_total\{code="200",host="127.0.0.1:\d+",method="GET"\} [1-9]', re.MULTILINE)


@pytest.fixture
def address() -> str:
    """One that nobody else has."""
    host, port = own_place()
    return f"{host}:{port}"


@pytest.fixture
def shown(tmp_path: Path, address: str) -> Iterator[Up]:
    """An `up` that serves them."""
    instance = Up(tmp_path / "data", flags=(*QUICK, f"--metrics-bind-address={address}")).start()
    yield instance
    instance.stop()


def get(address: str, path: str) -> tuple[int, str]:
    """Status and text of an answer."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WITHIN_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def refused(tmp_path: Path, *flags: str) -> tuple[int, str]:
    """Exit status and standard error of an `up` that cannot begin."""
    command = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(tmp_path / "data"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False)
    return done.returncode, done.stderr


def test_its_requests_are_counted(shown: Up, address: str) -> None:
    """The metrics of a controller, those of its requests among them; ready once it has listed what it needs."""
    assert shown.process is not None
    eventually(lambda: get(address, "/readyz"), until=lambda answer: answer == (200, "ok"))
    assert get(address, "/healthz") == (200, "ok")
    _, text = eventually(lambda: get(address, "/metrics"), until=lambda answer: bool(COUNTED.search(answer[1])))
    assert "\nhorizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 0.0\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--metrics-bind-address=nowhere",), '--metrics-bind-address "nowhere" is not HOST:PORT'),
        (
            ("--metrics-bind-address=127.0.0.1:0", "--without-autoscaler"),
            "--metrics-bind-address needs the autoscaler, which is left out",
        ),
    ],
    ids=["no address", "no autoscaler"],
)
def test_what_cannot_be_meant(tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    """One sentence, and exit status 2."""
    assert refused(tmp_path, *flags) == (2, f"podscaler: {sentence}\n")


@pytest.mark.slow
def test_an_address_that_somebody_has(tmp_path: Path) -> None:
    """It is refused before anything runs, not tried again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken = f"127.0.0.1:{listening.getsockname()[1]}"
        status, error = refused(tmp_path, f"--metrics-bind-address={taken}")
    assert (status, error.startswith(f"podscaler: --metrics-bind-address {taken}: ")) == (2, True)
