"""The golden transcripts of kubectl, replayed with the machine's kubectl against our server."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from golden_gaps import KUBECTL_GAPS
from golden_kubectl import Metrics, Target, Transcript
from golden_server import ADMIN_TOKEN, serving

from podscaler.clock import SystemClock
from podscaler.controlplane.access import certificates, kubeconfig

TRANSCRIPTS = Path(__file__).parent / "golden" / "kubectl.jsonl"
KUBECTL = shutil.which("kubectl")
AT_ONCE = 4

pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="this machine has no kubectl"),
]


def _version() -> str:
    """The minor version of the machine's kubectl, empty where there is none."""
    if KUBECTL is None:
        return ""
    done = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, check=True)
    info = json.loads(done.stdout)["clientVersion"]
    return f"{info['major']}.{info['minor'].rstrip('+')}"


def _cases() -> dict[str, dict[str, Any]]:
    version = _version()
    cases = [json.loads(line) for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]
    return {
        case["name"]: case for case in cases if version in case["clients"] and "no-metrics" not in case.get("needs", ())
    }


CASES = _cases()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server over HTTPS, and a home with the kubeconfig that `up` would write."""
    folder = tmp_path_factory.mktemp("kubectl")
    made = certificates.ensure(folder / "pki", now_ns=SystemClock().now_ns())
    metrics = {"PodMetrics": Metrics(), "NodeMetrics": Metrics()}
    virtual = {"pods.metrics.k8s.io": metrics["PodMetrics"], "nodes.metrics.k8s.io": metrics["NodeMetrics"]}
    with serving(folder / "store", tls=made.server_context(), virtual=virtual) as port:
        document = kubeconfig.document(
            server_url=f"https://127.0.0.1:{port}", authority_pem=made.authority_pem, token=ADMIN_TOKEN
        )
        home = folder / "home"
        kubeconfig.write(home / "config", document)
        assert KUBECTL is not None
        yield Target(port, made.client_context(), KUBECTL, home, metrics)


@pytest.fixture(scope="module")
def differences(target: Target) -> dict[str, str]:
    """The first difference of every case, empty for those without."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda case: Transcript(target, case).run(), CASES.values())
        return dict(zip(CASES, found, strict=True))


def _parameters() -> list[Any]:
    return [
        pytest.param(
            name,
            id=name,
            marks=[pytest.mark.xfail(reason=KUBECTL_GAPS[name], strict=True)] if name in KUBECTL_GAPS else [],
        )
        for name in CASES
    ]


@pytest.mark.parametrize("name", _parameters())
def test_kubectl(name: str, differences: dict[str, str]) -> None:
    """kubectl prints and exits as it did against the captured server; a case listed as a gap must still differ."""
    assert differences[name] == ""
