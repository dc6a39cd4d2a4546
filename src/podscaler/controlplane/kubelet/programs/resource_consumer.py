"""The image `resource-consumer`: uses CPU time and memory, and raises metrics, as much and as long as requests say.

`programs.agnhost` calls `main`. A request starts a process that uses its amount and ends by itself, so that usages add
up; at most CONSUMERS_MAX run at a time, and a further request is a 503. The processes end with the container.

    POST /ConsumeCPU   millicores, durationSec
    POST /ConsumeMem   megabytes, durationSec
    POST /BumpMetric   metric, delta, durationSec
    POST /GetCurrentStatus
    GET  /metrics      the bumped metrics, in Prometheus' text format

Source: test/images/resource-consumer of Kubernetes v1.37 (paths, parameters, messages).
Differs: the number of processes is limited.
"""

import math
import mmap
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser, parse_int
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error_response, lacks_any, serve

CONSUMERS_MAX: Final = 64
METRICS_MAX: Final = 1000
BURST_S: Final = 0.002
"""The seconds of CPU time that are used at once, before usage is compared with the aim again."""
PAUSE_S: Final = 0.01
NOT_GIVEN: Final = "not given function argument"
INCORRECT: Final = "incorrect function argument"
_MEGABYTE: Final = 1024 * 1024
_MILLI_PER_CORE: Final = 1000


def consume_cpu(millicores: int, duration_s: int) -> None:
    """Use CPU time for `duration_s` seconds, `millicores` on the average since the start."""
    started_s = time.monotonic()
    while (elapsed_s := time.monotonic() - started_s) < duration_s:
        if time.process_time() < elapsed_s * millicores / _MILLI_PER_CORE:
            _burn_cpu(BURST_S)
        else:
            time.sleep(PAUSE_S)


def _burn_cpu(cpu_s: float) -> None:
    """Use `cpu_s` seconds of CPU time."""
    end_s = time.process_time() + cpu_s
    while time.process_time() < end_s:
        for number in range(1000):  # so many square roots between two readings of the clock
            math.sqrt(number)


def resident_bytes() -> int:
    """The resident memory of this process; 0 if it cannot be read."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            _total_pages, resident_pages, *_ = file.read().split()
            return int(resident_pages) * mmap.PAGESIZE
    except OSError:
        return 0


def consume_memory(megabytes: int, duration_s: int) -> None:
    """Use `megabytes` MiB of resident memory, with those of this process itself, for `duration_s` seconds."""
    with mmap.mmap(-1, max(megabytes * _MEGABYTE - resident_bytes(), mmap.PAGESIZE)) as memory:
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1  # a page is resident once it was written to
        time.sleep(duration_s)


class Consumers:
    """The processes that use CPU time or memory.

    Args:
        command: runs this program in a process of its own (`main`).
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def start(self, resource: str, amount: int, duration_s: int) -> bool:
        """Start a process that uses `millicores` or `megabytes`; returns False where too many run. Raises OSError."""
        with self._lock:
            self._running = [process for process in self._running if process.poll() is None]
            if len(self._running) >= CONSUMERS_MAX:
                return False
            argv = [*self._command, resource, str(amount), str(duration_s)]
            self._running.append(subprocess.Popen(argv))  # noqa: S603  this program, with numbers
            return True


class BumpedMetrics:
    """The values of metrics, each the sum of the deltas that have not expired."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()

    def bump(self, name: str, delta: float, duration_s: int) -> bool:
        """Add `delta` to a metric for a duration; returns False if there are too many metrics."""
        with self._lock:
            if name not in self._values and len(self._values) >= METRICS_MAX:
                return False
            self._add_delta(name, delta)
        timer = threading.Timer(duration_s, self._expire_delta, (name, delta))
        timer.daemon = True
        timer.start()
        return True

    def text(self) -> str:
        """The metrics in Prometheus' text format."""
        with self._lock:
            return "".join(
                f"# HELP {name} info message.\n# TYPE {name} gauge\n{name} {value:f}\n"
                for name, value in self._values.items()
            )

    def _expire_delta(self, name: str, delta: float) -> None:
        with self._lock:
            self._add_delta(name, -delta)

    def _add_delta(self, name: str, delta: float) -> None:
        self._values[name] = self._values.get(name, 0.0) + delta


class ResourceConsumer:
    """Responds to the requests."""

    def __init__(self, consumers: Consumers) -> None:
        self._consumers = consumers
        self._metrics = BumpedMetrics()

    def respond(self, request: WebRequest) -> WebResponse:
        """The response to a request, which may start a process. A new path: a case here."""
        if request.path == "/metrics":
            return WebResponse(self._metrics.text())
        if request.method != "POST":
            return error_response("Bad request. Not a POST request", 400)
        match request.path:
            case "/ConsumeCPU":
                return self._start_consumer(request, "millicores")
            case "/ConsumeMem":
                return self._start_consumer(request, "megabytes")
            case "/BumpMetric":
                return self._bump_metric(request)
            case "/GetCurrentStatus":
                return WebResponse("Warning: not implemented!\nGetCurrentStatus")
        return error_response(f"unknown function: {request.path}", 404)

    def _start_consumer(self, request: WebRequest, parameter: str) -> WebResponse:
        """Use an amount of CPU or memory for a duration; `parameter` is `millicores` or `megabytes`."""
        form = request.form
        if lacks_any(form, (parameter, "durationSec")):
            return error_response(NOT_GIVEN, 400)
        amount, duration_s = parse_int(form[parameter]), parse_int(form["durationSec"])
        if amount is None or duration_s is None:
            return error_response(INCORRECT, 400)
        if not self._consumers.start(parameter, amount, duration_s):
            return error_response(f"more than {CONSUMERS_MAX} processes use resources already", 503)
        return WebResponse(f"{request.path[1:]}\n{amount} {parameter}\n{duration_s} durationSec\n")

    def _bump_metric(self, request: WebRequest) -> WebResponse:
        """Add to a custom metric for a duration."""
        form = request.form
        if lacks_any(form, ("metric", "delta", "durationSec")):
            return error_response(NOT_GIVEN, 400)
        delta, duration_s = _parse_float(form["delta"]), parse_int(form["durationSec"])
        if delta is None or duration_s is None:
            return error_response(INCORRECT, 400)
        if not self._metrics.bump(form["metric"], delta, duration_s):
            return error_response(f"there are {METRICS_MAX} metrics already", 503)
        return WebResponse(f"BumpMetric\n{form['metric']} metric\n{delta:g} delta\n{duration_s} durationSec\n")


def _parse_float(number: str) -> float | None:
    """The number that a text represents, None for a text that is no number."""
    try:
        return float(number)
    except ValueError:
        return None


def main(args: Sequence[str], command: Sequence[str]) -> int:
    """Serve, or be one of the processes that use a resource; returns the exit status.

    Args:
        args: the flags of the server; or `millicores` or `megabytes`, the amount, and the seconds.
        command: runs this function with further arguments in a process of its own.
    """
    if args[:1] == ["millicores"]:
        consume_cpu(int(args[1]), int(args[2]))
        return 0
    if args[:1] == ["megabytes"]:
        consume_memory(int(args[1]), int(args[2]))
        return 0
    parser = ArgumentParser(prog="consumer")
    parser.add_flag("port", 8080)
    options = parser.parse_args(args)
    print(f"consumer: {sys.version.split()[0]}", flush=True)
    return serve(ResourceConsumer(Consumers(command)).respond, options.port)
