"""The format of container log files: timestamp, stream, tag and text in each line, as in the CRI.

`kubelet.logs.container_log` writes lines and `log_reader` parses them. Pure. For example:

    2026-01-01T00:00:00.000000001Z stdout F the text
    2026-01-01T00:00:00.000000002Z stderr P a part of a line that has not ended (or is longer than 16 KiB)

Source: the CRI logging format (Kubernetes documentation, "Logging Architecture"; design proposal kubelet-cri-logging).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from podscaler.base.clock import NANOSECONDS

LINE_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log file.

    Attributes:
        stamp: the timestamp.
        text: the output of the container, without a newline.
        is_complete: whether it ends a line of the output (tag F, else P).
    """

    stamp: bytes
    text: bytes
    is_complete: bool


@lru_cache(maxsize=4)
def _format_second(instant_s: int) -> str:
    """A second since the epoch in RFC 3339, without fraction and zone; cached, as most lines have the same second."""
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def stamp(instant_ns: int) -> bytes:
    """An instant as RFC 3339 with nine decimals, so that timestamps sort as bytes."""
    seconds, fraction_ns = divmod(instant_ns, NANOSECONDS)
    return f"{_format_second(seconds)}.{fraction_ns:09d}Z".encode("ascii")


class LineSplitter:
    """Splits the bytes of one stream into stored lines of at most LINE_BYTES_MAX of text.

    Args:
        stream: `stdout` or `stderr`.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream.encode("ascii")
        self._incomplete_line = b""

    def feed(self, data: bytes, now_ns: int) -> bytes:
        """The stored form of all lines that are complete now; an incomplete line is kept for the next call.

        Args:
            data: output of the container.
            now_ns: the timestamp of the lines.
        """
        prefix = stamp(now_ns) + b" " + self._stream
        complete_lines, newline, incomplete_line = (self._incomplete_line + data).rpartition(b"\n")
        stored = _store_complete(complete_lines, prefix) if newline else b""
        while len(incomplete_line) > LINE_BYTES_MAX:
            stored += prefix + b" P " + incomplete_line[:LINE_BYTES_MAX] + b"\n"
            incomplete_line = incomplete_line[LINE_BYTES_MAX:]
        self._incomplete_line = incomplete_line
        return stored

    def finish(self, now_ns: int) -> bytes:
        """The stored form of an incomplete last line; empty if there is none."""
        incomplete_line, self._incomplete_line = self._incomplete_line, b""
        if not incomplete_line:
            return b""
        return stamp(now_ns) + b" " + self._stream + b" P " + incomplete_line + b"\n"


def _store_complete(lines: bytes, prefix: bytes) -> bytes:
    """The stored form of complete lines, separated by newlines; `prefix` is timestamp and stream."""
    if len(lines) <= LINE_BYTES_MAX:  # no line can be too long: one pass for all of them
        return prefix + b" F " + lines.replace(b"\n", b"\n" + prefix + b" F ") + b"\n"
    return b"".join(_store_line(prefix, line) for line in lines.split(b"\n"))


def _store_line(prefix: bytes, line: bytes) -> bytes:
    """The stored form of a line of any length: full parts with tag P, then the last part with tag F."""
    stored = b""
    while len(line) > LINE_BYTES_MAX:
        stored += prefix + b" P " + line[:LINE_BYTES_MAX] + b"\n"
        line = line[LINE_BYTES_MAX:]
    return stored + prefix + b" F " + line + b"\n"


def parse(stored_line: bytes) -> LogLine | None:
    """Parse a line of a log file (without its newline); None for a line that is not in the format."""
    try:
        line_stamp, _stream, tag, output = stored_line.split(b" ", 3)
    except ValueError:
        return None
    return LogLine(line_stamp, output, tag == b"F") if tag in (b"F", b"P") else None


def kubectl_output(line: LogLine, *, timestamps: bool, at_start: bool) -> bytes:
    """The bytes that `kubectl logs` prints for a line.

    Args:
        timestamps: whether lines begin with their timestamps.
        at_start: whether the line before was complete (the continuation of a line has no timestamp).
    """
    prefix = line.stamp + b" " if timestamps and at_start else b""
    return prefix + line.text + (b"\n" if line.is_complete else b"")
