"""The scenarios of `podscaler demo` with their real servers: the course, and that nothing stays behind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import prerequisites
from patience import COMMAND_WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def played(scenario: str, folder: Path, *, seconds: int) -> dict[str, Any]:
    """The summary of a scenario that showed everything in so many seconds, and left no file and no process."""
    command = [sys.executable, "-m", "podscaler", "demo", "--scenario", scenario, "--json", f"--seconds={seconds}"]
    env = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds + COMMAND_WITHIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(folder.glob("podscaler-demo-*")) == []
    assert [each.cmdline() for each in psutil.process_iter() if _is_of(each, folder)] == []
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _is_of(process: psutil.Process, folder: Path) -> bool:
    try:
        return any(str(folder) in argument for argument in process.cmdline())
    except psutil.Error:
        return False


@prerequisites.REDIS.mark(is_there=shutil.which("redis-server") is not None)
def test_workers_follow_a_queue(tmp_path: Path) -> None:
    """Up, down to zero, up again, and all jobs are done."""
    facts = played("queue", tmp_path, seconds=600)
    replicas = [each["replicas"] for each in facts["timeline"]]
    asleep = replicas.index(0)
    assert (max(replicas[:asleep]) > 1, max(replicas[asleep:]) > 0) == (True, True)
    assert facts["jobs"] == {"arrived": 150, "waiting": 0}


@prerequisites.PROMETHEUS.mark(is_there=shutil.which("prometheus") is not None)
def test_a_web_service_follows_its_requests(tmp_path: Path) -> None:
    """Up under load by what Prometheus counts, down without it; no request fails."""
    facts = played("requests", tmp_path, seconds=150)
    assert (facts["scaledUp"], facts["scaledDown"], facts["requests"]["failed"]) == (True, True, 0)
    assert facts["timeline"][0]["reason"] == "external metric requests-per-second(nil) above target"
