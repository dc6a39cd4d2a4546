"""What is kept of a real API server's answers is still what the real API server answers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import cluster_plane

import prerequisites

pytestmark = [pytest.mark.e2e, pytest.mark.real]

CONFORMANCE = Path(__file__).parents[1] / "conformance"
RECORD = CONFORMANCE / "differential" / "record.py"
FAMILIES = ("applying", *sorted(path.stem for path in (CONFORMANCE / "recorded").glob("*.jsonl")))
TOKENS = ("admin-token,admin,1000,system:masters", "viewer-token,viewer,1001,viewers")
FAMILY_WITHIN_S = 300


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a kube-apiserver that is set up as the one whose answers were recorded."""
    programs = cluster_plane.programs()
    if programs is None:
        prerequisites.REAL_PLANE.skip()
    folder = tmp_path_factory.mktemp("real-answers")
    tokens = folder / "tokens.csv"
    tokens.touch(0o600)
    tokens.write_text("".join(f"{line}\n" for line in TOKENS))
    plane = cluster_plane.Plane(
        folder, programs, server_flags=(f"--token-auth-file={tokens}", "--anonymous-auth=false")
    )
    try:
        plane.start()
        yield plane.url
    finally:
        plane.stop()


@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_answers_are_those_of_the_real_server(family: str, real_server: str) -> None:
    """Whoever compares us with the recorded answers compares us with Kubernetes."""
    command = [sys.executable, RECORD, "--server", real_server, "--token", "admin-token", "--check", family]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FAMILY_WITHIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
