"""`agnhost logs-generator`: writes a number of log lines to stderr, evenly over a duration, then ends.

`programs.agnhost` calls `main`. The lines have the form of klog and look like requests to an API server.

Source: test/images/agnhost/logs-generator of Kubernetes v1.37 (flags, form of the lines).
"""

import os
import random
import string
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser, parse_duration

METHODS: Final = ("GET", "POST", "PUT")
NAMESPACES: Final = ("kube-system", "default", "ns")
INVALID_FLAG_STATUS: Final = 255


def request_line(number: int, rng: random.Random) -> str:
    """The text of the line with this number: a request to a pod with a name of 3 or 4 letters, and its status.

    Args:
        rng: chooses method, namespace, name and status.
    """
    name = "".join(rng.choices(string.ascii_lowercase, k=rng.randrange(3, 5)))
    path = f"/api/v1/namespaces/{rng.choice(NAMESPACES)}/pods/{name}"
    return f"{number} {rng.choice(METHODS)} {path} {rng.randrange(200, 600)}"


def klog_line(message: str, logged_at: datetime, process_id: int) -> str:
    """A line of information in the form of klog, with the place in upstream's program, and a line feed."""
    return f"I{logged_at:%m%d %H:%M:%S.%f} {process_id:>7} logs_generator.go:76] {message}\n"


def write_lines(
    line_count: int, pause_s: float, output: TextIO, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Write `line_count` lines to `output`, and sleep for `pause_s` seconds after each."""
    rng = random.Random()  # noqa: S311 - made-up requests in a log
    for number in range(line_count):
        output.write(klog_line(request_line(number, rng), datetime.now(UTC), os.getpid()))
        output.flush()
        sleep(pause_s)


def main(args: Sequence[str]) -> int:
    """Write the lines; returns the exit status, 255 where a flag is missing or not above zero."""
    parser = ArgumentParser(prog="logs-generator")
    parser.add_argument("-t", "--log-lines-total", type=int, default=0)
    parser.add_argument("-d", "--run-duration", default="0")
    options = parser.parse_args(args)
    duration_s = parse_duration(options.run_duration) or 0  # one that is not valid is rejected below, as 0 is
    if options.log_lines_total <= 0:
        print(f"Invalid total number of lines: {options.log_lines_total}", file=sys.stderr)
        return INVALID_FLAG_STATUS
    if duration_s <= 0:
        print(f"Invalid duration: {options.run_duration}", file=sys.stderr)
        return INVALID_FLAG_STATUS
    write_lines(options.log_lines_total, duration_s / options.log_lines_total, sys.stderr)
    return 0
