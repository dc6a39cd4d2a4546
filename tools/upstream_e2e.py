"""Runs Kubernetes' own end-to-end tests against `podscaler up`, and prints a table of their outcomes.

Called by `make upstream-e2e`. The test binary is built once into the cache of `make assets` (a few minutes, some
120 MB). For each controller, an `up` with an empty data directory runs the tests that `--focus` matches: `ours` has the
autoscaler of podscaler, `upstream` has `up --without-autoscaler` and the kube-controller-manager of `make assets`. The
tests of autoscaling wait for minutes each, so that all of them take hours; nothing else should use the machine.

The image nginx of the tests stands for agnhost's test-webserver on port 80: most tests that name it need a pod that
runs, not nginx.

Exit status 0 when all tests passed, 1 when one failed, 2 where something that it needs is absent or does not start.
"""

import argparse
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import asset_modules
from asset_modules import AssetModule

from podscaler.controlplane.kubelet.programs import agnhost

SUITE = AssetModule("upstream_e2e", {"e2e.test": "k8s.io/kubernetes/test/e2e"}, {})
FOCUS = r"\[sig-autoscaling\].*Horizontal pod autoscaling"
CONTROLLERS = ("ours", "upstream")
START_S = 60
STOP_S = 60
TIMEOUT = "12h"
REASON_LETTERS = 160
NGINX = "registry.k8s.io/e2e-test-images/nginx"
AGNHOST = Path(agnhost.__file__)
_UP_FLAGS = ("--without-dashboard", "--feature-gates=HPAScaleToZero=true")


class Unable(Exception):
    """Something that the run needs is absent or does not start."""


@dataclass(frozen=True, slots=True)
class SpecOutcome:
    """The outcome of one test.

    Attributes:
        name: as Ginkgo prints it, without its labels.
        status: Ginkgo's word: passed, failed, timedout, panicked, interrupted.
        reason: the beginning of the failure, empty for a test that passed.
    """

    name: str
    status: str
    duration_s: float
    reason: str


def parse_report(text: str) -> list[SpecOutcome]:
    """The outcomes of the tests that ran, by a JUnit report of Ginkgo, in its order.

    Raises ElementTree.ParseError.
    """
    outcomes = []
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, status = case.get("name", ""), case.get("status", "")
        if not name.startswith("[It] ") or status in ("skipped", "pending"):
            continue
        problem = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        reason = " ".join(problem.get("message", "").split())[:REASON_LETTERS] if problem is not None else ""
        plain = name.removeprefix("[It] ").rpartition(" [")[0] if name.endswith("]") else name.removeprefix("[It] ")
        outcomes.append(SpecOutcome(plain, status, float(case.get("time", "0")), reason))
    return outcomes


def table(outcomes: Mapping[str, Sequence[SpecOutcome]]) -> str:
    """A Markdown table: one row for each test, one column for each controller, and the sums below it."""
    names = sorted({outcome.name for found in outcomes.values() for outcome in found})
    rows = [f"| test | {' | '.join(outcomes)} | reason |", f"|---|{'---|' * len(outcomes)}---|"]
    for name in names:
        found = {controller: _find(outcomes[controller], name) for controller in outcomes}
        cells = [f"{each.status} ({each.duration_s:.0f} s)" if each else "not run" for each in found.values()]
        reasons = [f"{controller}: {each.reason}" for controller, each in found.items() if each and each.reason]
        rows.append(f"| {_cell(name)} | {' | '.join(cells)} | {_cell('; '.join(reasons))} |")
    sums = [
        f"{controller}: {sum(each.status == 'passed' for each in found)} of {len(found)} passed"
        for controller, found in outcomes.items()
    ]
    return "\n".join([*rows, "", *sums])


def _find(outcomes: Sequence[SpecOutcome], name: str) -> SpecOutcome | None:
    return next((each for each in outcomes if each.name == name), None)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def ensure_suite() -> Path:
    """The test binary, which is built if need be. Raises Unable, CalledProcessError."""
    binary = SUITE.folder / "e2e.test"
    if SUITE.is_built():
        return binary
    if shutil.which("go") is None:
        raise Unable("Go is not installed, and it is needed to build e2e.test")
    place = SUITE.folder.parent
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=".unfinished", dir=place.parent))
    try:
        flags = ["-c", "-mod=readonly", "-buildvcs=false", "-trimpath", "-p", "1", "-ldflags", SUITE.linker_flags]
        output = unfinished / "bin" / "e2e.test"
        print(f"building {output.name} ({SUITE.programs['e2e.test']})", flush=True)
        command = ["go", "test", *flags, "-o", str(output), SUITE.programs["e2e.test"]]
        subprocess.run(command, cwd=SUITE.source, check=True, env={**os.environ, "CGO_ENABLED": "0"})
        unfinished.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return binary


@contextmanager
def running(command: Sequence[str], log: Path, *, starts_with: str = "") -> Iterator[None]:
    """Run a program until the block ends, its output in `log`.

    Args:
        starts_with: the block begins once a line of its standard output begins so; empty: at once.

    Raises Unable where it does not start, or has not ended by itself in time.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.PIPE if starts_with else output, stderr=output)
        try:
            if starts_with:
                _await_line(process, starts_with.encode(), log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _await_line(process: "subprocess.Popen[bytes]", start: bytes, log: Path) -> None:
    assert process.stdout is not None, "its output is a pipe"
    deadline_s = time.monotonic() + START_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left_s)[0]:
            break
        line = process.stdout.readline()
        if line.startswith(start):
            return
        if not line:
            break
    raise Unable(f"{process.args!r} does not start: {log}")


def controller_command(kubeconfig: Path) -> list[str]:
    """The command of upstream's autoscaler. Raises Unable where `make assets` was not run."""
    program = asset_modules.find_program("kube-controller-manager")
    if program is None:
        raise Unable("kube-controller-manager is not built (make assets)")
    flags = ("--controllers=horizontal-pod-autoscaler-controller", "--leader-elect=false", "--secure-port=0")
    return [str(program), f"--kubeconfig={kubeconfig}", *flags, "--feature-gates=HPAScaleToZero=true"]


def _write_web_server(folder: Path) -> Path:
    """The program of the image nginx, which this writes into `folder`."""
    program = folder / "nginx"
    program.write_text(
        f"#!/bin/sh\nexec {shlex.join([sys.executable, str(AGNHOST), 'test-webserver'])}\n", encoding="utf-8"
    )
    program.chmod(0o755)
    return program


def run_suite(binary: Path, controller: str, options: argparse.Namespace, folder: Path) -> list[SpecOutcome]:
    """The outcomes of the tests with one controller. Raises Unable."""
    folder.mkdir(parents=True)
    kubeconfig, report = folder / "kubeconfig", folder / "junit.xml"
    up = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(folder / "data"), *_UP_FLAGS]
    up += ["--kubeconfig-out", str(kubeconfig), f"--image={NGINX}={_write_web_server(folder)}"]
    if controller == "upstream":
        up.append("--without-autoscaler")
    kubectl = asset_modules.find_program("kubectl") or Path(shutil.which("kubectl") or "kubectl")
    command = [str(binary), f"--kubeconfig={kubeconfig}", "--provider=skeleton", f"--kubectl-path={kubectl}"]
    command += [f"--ginkgo.focus={options.focus}", f"--ginkgo.junit-report={report}", f"--ginkgo.timeout={TIMEOUT}"]
    command += ["--ginkgo.no-color", "--ginkgo.silence-skips"]
    if options.skip:
        command.append(f"--ginkgo.skip={options.skip}")
    with ExitStack() as stack:
        stack.enter_context(running(up, folder / "up.log", starts_with="podscaler is up"))
        if controller == "upstream":
            stack.enter_context(running(controller_command(kubeconfig), folder / "controller.log"))
        with (folder / "e2e.log").open("wb") as log:
            subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not report.exists():
        raise Unable(f"the tests wrote no report: {folder / 'e2e.log'}")
    return parse_report(report.read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> int:
    """The exit status, as the module says."""
    parser = argparse.ArgumentParser(description="Kubernetes' end-to-end tests against `podscaler up`")
    parser.add_argument("--focus", default=FOCUS, help="a regular expression of the names of tests")
    parser.add_argument("--skip", default="", help="a regular expression of the names of tests to leave out")
    parser.add_argument("--controller", action="append", choices=CONTROLLERS, help="default: both, one after the other")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="upstream-e2e-"))
    print(f"logs: {folder}", flush=True)
    try:
        binary = ensure_suite()
        wanted = options.controller or CONTROLLERS
        outcomes = {each: run_suite(binary, each, options, folder / each) for each in wanted}
    except (Unable, subprocess.CalledProcessError) as failure:
        print(failure, file=sys.stderr)
        return 2
    print(table(outcomes))
    return int(any(each.status != "passed" for found in outcomes.values() for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
