"""The real kube-controller-manager, working on a server of ours with some of its controllers."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from real_programs import real_program

STOP_TIMEOUT_S = 30

HORIZONTAL = ("horizontal-pod-autoscaler-controller",)
WORKLOADS = (
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
)
"""What `up --without-workload-controllers` leaves to others."""

QUICK = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=5s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=2s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
)


@contextmanager
def controller_manager(kubeconfig: Path, *controllers: str, log: Path, flags: Sequence[str] = ()) -> Iterator[Path]:
    """Runs it until the block ends; yields its log. Skips the test where `make assets` was not run."""
    program = real_program("kube-controller-manager")
    command = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        "--leader-elect=false",
        "--secure-port=0",
        *QUICK,
        *flags,
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent)}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        yield log
        assert process.poll() is None, f"it ended by itself: {log.read_text()[-2000:]}"
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
