"""`podscaler record`: the controller that writes nothing, into a recording, with all of its flags."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podscaler.cli.commands import controller
from podscaler.cli.main import cli
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.record_file import RecordFile

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


def test_it_is_a_dry_run_of_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags before and behind the file are the controller's."""
    ran: list[tuple[ControllerSettings, RecordFile | None]] = []

    async def run(
        connection: Any, settings: ControllerSettings, serving: Any, file: RecordFile | None, **_: Any
    ) -> None:
        del connection, serving
        ran.append((settings, file))

    monkeypatch.setattr(controller, "run", run)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    path = tmp_path / "web.recording.jsonl.gz"
    flags = ["--kubeconfig", str(kubeconfig), "--horizontal-pod-autoscaler-sync-period=5s"]
    done = CliRunner().invoke(cli, ["record", str(path), *flags])
    assert (done.exit_code, done.output) == (0, "")
    ((settings, file),) = ran
    assert file is not None
    assert (settings.dry_run, settings.sync_period_ns, file.path) == (True, 5_000_000_000, path)


def test_a_flag_that_the_controller_does_not_have() -> None:
    """The sentence is the controller's."""
    done = CliRunner().invoke(cli, ["record", "web.recording.jsonl.gz", "--no-such-flag"])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: No such option '--no-such-flag'.")
