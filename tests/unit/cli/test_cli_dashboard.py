"""`podscaler dashboard`: flags that cannot be used are refused in a sentence before anything is served."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.cli.main import cli

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--bind", "0.0.0.0"], "--bind 0.0.0.0 is reachable from other machines: give --tls-cert-file and its key"),
        (["--bind", "::"], "--bind :: is reachable from other machines: give --tls-cert-file and its key"),
        (["--bind", "example"], '--bind "example" is not an IP address'),
        (["--tls-cert-file", "c.pem"], "--tls-cert-file and --tls-private-key-file go together"),
        (["--recording", "none.gz"], "cannot read none.gz: No such file or directory"),
        (["--recording", "text.txt"], "text.txt: not the header of a recording"),
        (["--record", "text.txt"], "--record: {folder}/text.txt exists and is not a recording"),
        (["--history-size", "1"], 'invalid argument "1" for "--history-size" flag: must be at least 4Ki'),
        (["-n", "a/b"], 'invalid argument "a/b" for "-n" flag'),
        (["--context", "none"], "none"),
        (["--bind", "localhost", "--context", "none"], "none"),
    ],
)
def test_flags_that_cannot_be_used(
    flags: list[str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").write_text(KUBECONFIG)
    (tmp_path / "text.txt").write_text("some text\n")
    result = CliRunner().invoke(cli, ["dashboard", "--kubeconfig", "config", *flags])
    assert result.exit_code == 2
    assert error.format(folder=tmp_path) in result.stderr
