"""Credentials from a program: how it is called, how long its answer counts, and what a failure says."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podscaler.base.clock import rfc3339
from podscaler.base.errors import UsageError
from podscaler.kube.config import exec_command
from podscaler.kube.config.exec_plugin import ExecPlugin
from podscaler.kube.config.kubeconfig_file import Exec, Extension, KubeconfigCluster, Variable
from podscaler.testing import VirtualClock

V1 = "client.authentication.k8s.io/v1"
PROGRAM = """#!{python}
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
runs = folder / "runs"
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
(folder / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
(folder / "called").write_text(json.dumps([sys.argv[1:], os.environ.get("FLAVOUR")]))
exec((folder / "then").read_text())
"""


class Program:
    """A credential plugin in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        path = folder / "plugin"
        path.write_text(PROGRAM.format(python=sys.executable))
        path.chmod(0o755)

    def does(self, code: str) -> None:
        """What it does after it noted how it was called."""
        (self.folder / "then").write_text(code)

    def answers(self, status: Any, **more: Any) -> None:
        """Print an ExecCredential with that status, whose token may hold the number of the run."""
        credential = {"kind": "ExecCredential", "apiVersion": V1, "status": status} | more
        self.does(f"print(json.dumps({credential!r}).replace('<run>', str(count)))")

    def plugin(self, cluster: Any = None, **more: Any) -> ExecPlugin:
        """The credentials of a kubeconfig in the same folder."""
        told: dict[str, Any] = {"api_version": V1, "interactive_mode": "Never"}
        settings = Exec(command="./plugin", **(told | more))
        return ExecPlugin(exec_command.build_command(settings, self.folder, cluster), self.clock)

    @property
    def runs(self) -> int:
        return int((self.folder / "runs").read_text())

    def expiry(self, span_s: int) -> str:
        return rfc3339(self.clock.now_ns() + span_s * 10**9)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A plugin that hands out a token without an expiry."""
    made = Program(tmp_path)
    made.answers({"token": "t<run>"})
    return made


async def test_how_it_is_called(program: Program) -> None:
    """Arguments, environment and KUBERNETES_EXEC_INFO arrive; a path with a slash starts at the kubeconfig."""
    cluster = KubeconfigCluster(
        server="https://h", tls_server_name="n", extensions=[Extension(exec_command.CONFIG_EXTENSION, {"a": 1})]
    )
    plugin = program.plugin(
        exec_command.cluster_info(cluster, b"PEM"), args=["get", "$HOME; x"], env=[Variable("FLAVOUR", "plum")]
    )
    assert await plugin.authorization() == "Bearer t1"
    assert msgspec.json.decode((program.folder / "called").read_bytes()) == [["get", "$HOME; x"], "plum"]
    assert msgspec.json.decode((program.folder / "info").read_bytes()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {
            "cluster": {
                "server": "https://h",
                "tls-server-name": "n",
                "certificate-authority-data": "UEVN",
                "config": {"a": 1},
            },
            "interactive": False,
        },
    }


async def test_one_run_for_all_who_wait(program: Program) -> None:
    """Requests that start together share one run, and later ones its answer."""
    plugin = program.plugin()
    headers = await asyncio.gather(*(plugin.authorization() for _ in range(5)))
    headers.append(await plugin.authorization())
    assert (set(headers), program.runs) == ({"Bearer t1"}, 1)


async def test_it_runs_again_shortly_before_the_expiry(program: Program) -> None:
    """What was handed out for ten minutes is used for nine and a half."""
    program.answers({"token": "t<run>", "expirationTimestamp": program.expiry(600)})
    plugin, seen = program.plugin(), []
    for span_s in (0, 569, 1):
        await program.clock.advance(span_s)
        seen.append(await plugin.authorization())
    assert seen == ["Bearer t1", "Bearer t1", "Bearer t2"]


async def test_a_refusal_makes_it_run_again(program: Program) -> None:
    """A token that the server refuses is renewed, but what was just handed out is not; late refusals count once."""
    plugin = program.plugin()
    first = await plugin.authorization()
    at_once = plugin.renew_after_401(first)
    await program.clock.advance(5)
    later = plugin.renew_after_401(first)
    second = await plugin.authorization()
    late = plugin.renew_after_401(first)
    assert (at_once, later, second, late, await plugin.authorization()) == (False, True, "Bearer t2", True, "Bearer t2")


async def test_certificates(program: Program) -> None:
    """A client certificate and its key come as one PEM, without a header."""
    program.answers({"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    plugin = program.plugin()
    assert (await plugin.authorization(), await plugin.pem()) == (None, b"CERT\nKEY")


async def test_a_failure_leaves_valid_credentials_in_use(program: Program) -> None:
    """A plugin that fails near the expiry is tried again after its back-off; what is still valid stays in use."""
    program.answers({"token": "t<run>", "expirationTimestamp": program.expiry(600)})
    plugin = program.plugin()
    await plugin.authorization()
    program.does("sys.exit(3)")
    await program.clock.advance(580)
    seen = [await plugin.authorization() for _ in range(3)]
    runs = program.runs
    await program.clock.advance(20)
    with pytest.raises(UsageError, match="failed with exit code 3"):
        await plugin.authorization()
    assert (seen, runs) == (["Bearer t1"] * 3, 2)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("sys.stderr.write('log in\\n first'); sys.exit(2)", "failed with exit code 2: log in first"),
        ("print('secret')", "exec plugin: standard output is not an ExecCredential in JSON"),
        ("print('{}')", f"exec plugin is configured to use {V1} of ExecCredential, plugin returned no version of no "),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': 'client.authentication.k8s.io/v1beta1'}))",
            "plugin returned client.authentication.k8s.io/v1beta1 of ExecCredential",
        ),
        (f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': '{V1}'}}))", "didn't return a status field"),
    ],
    ids=["exit code", "no JSON", "nothing", "another version", "no status"],
)
async def test_failures(program: Program, code: str, text: str) -> None:
    """One sentence with the program, what went wrong, and what it said on standard error."""
    program.does(code)
    with pytest.raises(UsageError) as caught:
        await program.plugin().authorization()
    assert str(caught.value).startswith(f"exec: {program.folder}/plugin: ")
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, "didn't return a token or cert/key pair"),
        ({"clientKeyData": "K"}, "returned only certificate or key, not both"),
        ({"token": "t", "expirationTimestamp": "soon"}, 'returned expirationTimestamp "soon", which is no RFC 3339'),
    ],
    ids=["nothing", "key alone", "expiry"],
)
async def test_unusable_statuses(program: Program, status: Any, text: str) -> None:
    """What was handed out must be usable."""
    program.answers(status)
    with pytest.raises(UsageError, match=text):
        await program.plugin().authorization()


async def test_a_program_that_hangs(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that does not end is ended."""
    monkeypatch.setattr("podscaler.kube.config.exec_plugin.RUN_LIMIT_S", 0.2)
    program.does("import time; time.sleep(60)")
    with pytest.raises(UsageError, match=r"did not end within 0\.2 s"):
        await program.plugin().authorization()


async def test_standard_error_is_shown(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    """What a program says while it succeeds is in the log; the token is not."""
    caplog.set_level(logging.DEBUG)
    (program.folder / "then").write_text("sys.stderr.write('renewed')\n" + (program.folder / "then").read_text())
    await program.plugin().authorization()
    assert ("renewed" in caplog.text, "t1" in caplog.text) == (True, False)


def test_a_terminal_that_is_needed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that must talk to the user cannot do so without a terminal."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ValueError, match="interactiveMode is Always, but standard input is not a terminal"):
        program.plugin(interactive_mode="Always")
