"""The flags of `podscaler adapter`: those of prometheus-adapter work, and mistakes are one sentence."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from podscaler.adapter.assembly import AdapterSettings
from podscaler.adapter.providers.object_values import Batching
from podscaler.cli.main import cli
from podscaler.cli.options import adapter_options
from podscaler.cli.options.adapter_options import AdapterOptions

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}]
users: [{name: u, user: {token: hidden}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with rules and a kubeconfig."""
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    return tmp_path


def parsed(files: Path, *flags: str) -> AdapterOptions:
    """The options of a command line."""
    found: list[AdapterOptions] = []

    @click.command()
    @adapter_options.options
    def command(**values: Any) -> None:
        found.append(adapter_options.parse(values))

    common = [f"--config={files}/rules.yaml", f"--kubeconfig={files}/kubeconfig"]
    result = CliRunner().invoke(command, [*common, *flags], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def refused(*flags: str) -> Result:
    """The result of a command line that cannot be used."""
    result = CliRunner().invoke(cli, ["adapter", *flags])
    assert result.exit_code == 2
    return result


def test_defaults(files: Path) -> None:
    """Series are listed every ten minutes, and results are used for half of an autoscaler's period."""
    options = parsed(files)
    assert options.settings == AdapterSettings(600.0, 600.0, 7.5, Batching.AUTO)
    assert (options.host, options.port, options.certificate_files, options.timeout_s) == ("0.0.0.0", 6443, None, 10.0)
    assert options.lister.server == options.authentication.server == "https://10.0.0.1"


def test_flags_of_prometheus_adapter(files: Path) -> None:
    """Its deployments' command lines work as they are."""
    flags = ["--prometheus-url=http://p:9090/", "--metrics-relist-interval=1m", "--metrics-max-age=5m", "--v=6"]
    flags += ["--logtostderr=true", "--cert-dir=/var/run/serving-cert", "--secure-port=443", "--disable-http2"]
    flags += ["--prometheus-header=X-Scope=a=b", "--prometheus-header=X-Other", "--prometheus-verb=POST"]
    flags += ["--client-qps=20", "--client-burst=30", f"--lister-kubeconfig={files}/kubeconfig"]
    options = parsed(files, *flags)
    assert (options.settings.relist_interval_s, options.settings.max_age_s, options.port) == (60.0, 300.0, 443)
    assert options.prometheus.headers == (("X-Scope", "a=b"), ("X-Other", ""))
    assert options.uses_post


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ([], "--config is needed, the file with the rules, or --resource, or --metric-sources"),
        (["--metrics-relist-interval=0s"], "--metrics-relist-interval must be greater than 0"),
        (["--metrics-max-age=1m"], "--metrics-max-age must not be less than --metrics-relist-interval"),
        (["--query-tick=-1s"], "--query-tick must not be negative"),
        (["--secure-port=70000"], "--secure-port must be between 0 and 65535, but got 70000"),
        (["--tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file go together"),
        (["--prometheus-timeout=x"], 'invalid argument "x" for "--prometheus-timeout" flag'),
        (
            ["--prometheus-auth-incluster", "--prometheus-auth-config=a"],
            "--prometheus-auth-incluster and --prometheus-auth-config exclude each other",
        ),
        (["--lister-kubeconfig=/none"], "/none"),
    ],
)
def test_mistakes(files: Path, flags: list[str], error: str) -> None:
    """A wrong command line is exit status 2 and one sentence."""
    common = [f"--config={files}/rules.yaml", f"--kubeconfig={files}/kubeconfig"] if flags else []
    result = refused(*common, *flags)
    assert error in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ("rules:\n- serieQuery: a", 'rules.yaml:2: rules[0]: unknown field "serieQuery"'),
        ("\t", "rules.yaml:1: not YAML"),
    ],
)
def test_rules_that_cannot_be_parsed(files: Path, rules: str, error: str) -> None:
    """The start ends with the place of the mistake."""
    (files / "rules.yaml").write_text(rules)
    assert error in refused(f"--config={files}/rules.yaml", f"--kubeconfig={files}/kubeconfig").output


def test_a_missing_file(files: Path) -> None:
    """The file is named."""
    result = refused(f"--config={files}/none.yaml", f"--kubeconfig={files}/kubeconfig")
    assert f"--config {files}/none.yaml: No such file or directory" in result.output
