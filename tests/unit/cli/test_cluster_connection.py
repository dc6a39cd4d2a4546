"""Flags that say which API server to work on, and how hard."""

from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from podscaler.base.errors import UsageError
from podscaler.cli.options.cluster_connection import ConnectionOptions, connection_options, parse_connection

DOCUMENT = {
    "current-context": "main",
    "contexts": [
        {"name": "main", "context": {"cluster": "c"}},
        {"name": "other", "context": {"cluster": "d"}},
    ],
    "clusters": [
        {"name": "c", "cluster": {"server": "https://c"}},
        {"name": "d", "cluster": {"server": "https://d"}},
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A kubeconfig with two contexts."""
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(DOCUMENT))
    return str(file)


def _parsed(*arguments: str) -> ConnectionOptions:
    found: list[ConnectionOptions] = []

    @click.command()
    @connection_options
    def command(**options: object) -> None:
        found.append(parse_connection(**options))  # type: ignore[arg-type]  # click hands over what the flags parsed

    result = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    assert result.exit_code == 0
    return found[0]


def test_defaults(path: str) -> None:
    """The current context, and no limit of requests."""
    connection = _parsed("--kubeconfig", path)
    assert (connection.config.server, connection.requests_per_s, connection.burst) == ("https://c", 0.0, 30)


def test_another_context_and_a_limit(path: str) -> None:
    """A context by name, a rate and a burst."""
    connection = _parsed("--kubeconfig", path, "--context=other", "--kube-api-qps=2.5", "--kube-api-burst=7")
    assert (connection.config.server, connection.requests_per_s, connection.burst) == ("https://d", 2.5, 7)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--kube-api-qps=many"], 'invalid argument "many" for "--kube-api-qps" flag'),
        (["--kube-api-qps=5", "--kube-api-burst=0"], "--kube-api-burst must be greater than 0, but got 0"),
        (["--context=none"], 'context "none" is not in contexts'),
    ],
)
def test_faults(path: str, arguments: list[str], text: str) -> None:
    """One sentence for each."""
    with pytest.raises(UsageError) as caught:
        _parsed("--kubeconfig", path, *arguments)
    assert text in str(caught.value)
