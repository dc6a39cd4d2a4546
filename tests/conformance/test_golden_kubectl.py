"""The golden transcripts of kubectl, replayed against our server with every kubectl that is at hand.

`make test` replays one in four, `make test-all` the others.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden_gaps import KUBECTL_GAPS
from golden_kubectl import Metrics, Target, Transcript
from golden_server import ADMIN_TOKEN, serving

import prerequisites
import sampling
from podscaler.base.clock import SystemClock
from podscaler.controlplane.credentials import certificates, kubeconfig
from real_programs import kubectls

TRANSCRIPTS = Path(__file__).parent / "golden" / "kubectl.jsonl"
AT_ONCE = 4

Differences = Callable[[str], dict[str, str]]


def _version(kubectl: str) -> str:
    """The minor version of a kubectl, such as 1.37."""
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True)
    info = json.loads(done.stdout)["clientVersion"]
    return f"{info['major']}.{info['minor'].rstrip('+')}"


def _clients() -> dict[str, str]:
    """The programs at hand, by version."""
    return {_version(kubectl): kubectl for kubectl in kubectls()}


def _cases(version: str) -> dict[str, dict[str, Any]]:
    cases = [json.loads(line) for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]
    return {
        case["name"]: case for case in cases if version in case["clients"] and "no-metrics" not in case.get("needs", ())
    }


CLIENTS = _clients()
CASES = {version: _cases(version) for version in CLIENTS}

pytestmark = [prerequisites.KUBECTL.mark(is_there=bool(CLIENTS))]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server over HTTPS, and a home with the kubeconfig that `up` would write."""
    folder = tmp_path_factory.mktemp("kubectl")
    made = certificates.ensure(folder / "pki", now_ns=SystemClock().now_ns())
    metrics = {"PodMetrics": Metrics(), "NodeMetrics": Metrics()}
    virtual = {"pods.metrics.k8s.io": metrics["PodMetrics"], "nodes.metrics.k8s.io": metrics["NodeMetrics"]}
    with serving(folder / "store", tls=made.server_context(), virtual=virtual) as port:
        document = kubeconfig.token_document(
            server_url=f"https://127.0.0.1:{port}", authority_pem=made.authority_pem, token=ADMIN_TOKEN
        )
        home = folder / "home"
        kubeconfig.write(home / "config", document)
        yield Target(port, made.client_context(), "", home, metrics)


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest, target: Target) -> Differences:
    """For a version of kubectl, the first difference of every case that was selected, empty for those without."""
    selected = {item.name for item in request.session.items}

    @cache
    def of_version(version: str) -> dict[str, str]:
        client = replace(target, kubectl=CLIENTS[version])
        cases = {name: case for name, case in CASES[version].items() if f"test_kubectl[{version}-{name}]" in selected}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda case: Transcript(client, case).run(), cases.values())
            return dict(zip(cases, found, strict=True))

    return of_version


def _parameters() -> list[Any]:
    return [
        pytest.param(
            version,
            name,
            id=f"{version}-{name}",
            marks=[pytest.mark.xfail(reason=KUBECTL_GAPS[name], strict=True)] if name in KUBECTL_GAPS else [],
        )
        for version, cases in CASES.items()
        for name in cases
    ]


@pytest.mark.parametrize(("version", "name"), sampling.one_in(4, _parameters()))
def test_kubectl(version: str, name: str, differences: Differences) -> None:
    """kubectl prints and exits as it did against the captured server; a case listed as a gap must still differ."""
    assert differences(version)[name] == ""
