"""`podscaler up` by itself: how long until it answers, and what it costs while nothing happens."""

import base64
import json
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

SETTLE_S = 10.0
IDLE_S = 30.0
START_LIMIT_S = 30.0


def is_ready(kubeconfig: Path) -> bool:
    """Whether an authenticated /readyz is answered with 200."""
    try:
        config = json.loads(kubeconfig.read_text())
        cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        request = urllib.request.Request(f"{cluster['server']}/readyz", headers={"Authorization": f"Bearer {token}"})
        context = ssl.create_default_context(cadata=authority)
        with urllib.request.urlopen(request, context=context, timeout=1) as response:
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def seconds_until_ready(kubeconfig: Path, begun: float) -> float:
    """How long it took; ends the benchmark where it takes too long."""
    while not is_ready(kubeconfig):
        if time.perf_counter() - begun > START_LIMIT_S:
            sys.exit(f"up did not answer within {START_LIMIT_S} s")
        time.sleep(0.01)
    return time.perf_counter() - begun


def idle_cost(pid: int) -> tuple[float, float]:
    """Percent of a core and MiB of memory while nothing happens."""
    process = psutil.Process(pid)
    time.sleep(SETTLE_S)
    before = process.cpu_times()
    time.sleep(IDLE_S)
    after = process.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return 100 * used_s / IDLE_S, process.memory_info().rss / 2**20


def row(name: str, data_dir: Path) -> str:
    """One start of `up`, measured."""
    kubeconfig = data_dir / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    begun = time.perf_counter()
    command = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        ready_s = seconds_until_ready(kubeconfig, begun)
        cpu_pct, memory_mib = idle_cost(process.pid)
    finally:
        process.terminate()
        process.wait()
    return f"| {name} | {ready_s:.2f} s | {cpu_pct:.2f} % | {memory_mib:.0f} MiB |"


def main() -> None:
    """Two starts on one data directory, as a table."""
    print("| start | /readyz answers after | CPU idle (of one core) | memory idle |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="podscaler-bench-") as folder:
        for name in ("first, with new certificates", "second"):
            print(row(name, Path(folder, "data")), flush=True)


if __name__ == "__main__":
    main()
