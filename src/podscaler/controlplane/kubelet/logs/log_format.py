"""The format of container log files: timestamp, stream, tag and text in each line, as in the CRI.

`container_log` writes lines and `log_reader` parses them. Pure. For example:

    2026-01-01T00:00:00.000000001Z stdout F the text
    2026-01-01T00:00:00.000000002Z stderr P a part of a line that has not ended (or is longer than 16 KiB)

Source: the CRI logging format (Kubernetes documentation, "Logging Architecture"; design proposal kubelet-cri-logging).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from podscaler.base.clock import NANOSECONDS

MAX_LINE_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class LogLine:
    """One stored line: timestamp, text without the newline, and whether it ends a line of the output (tag F)."""

    stamp: bytes
    text: bytes
    is_complete: bool


@lru_cache(maxsize=4)
def _second(instant_s: int) -> str:
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def stamp(instant_ns: int) -> bytes:
    """An instant as RFC 3339 with nine decimals, so that timestamps sort as bytes."""
    seconds, rest_ns = divmod(instant_ns, NANOSECONDS)
    return f"{_second(seconds)}.{rest_ns:09d}Z".encode("ascii")


class LineSplitter:
    """Splits the bytes of one stream into stored lines of at most MAX_LINE_BYTES of text.

    Args:
        stream: `stdout` or `stderr`.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream.encode("ascii")
        self._rest = b""

    def feed(self, data: bytes, now_ns: int) -> bytes:
        """The stored form of all lines that are complete now; an incomplete line is kept for the next call."""
        head = stamp(now_ns) + b" " + self._stream
        complete, newline, rest = (self._rest + data).rpartition(b"\n")
        stored = self._complete(complete, head) if newline else b""
        while len(rest) > MAX_LINE_BYTES:
            stored += head + b" P " + rest[:MAX_LINE_BYTES] + b"\n"
            rest = rest[MAX_LINE_BYTES:]
        self._rest = rest
        return stored

    @staticmethod
    def _complete(lines: bytes, head: bytes) -> bytes:
        if len(lines) <= MAX_LINE_BYTES:  # no line can be too long: one pass for all of them
            return head + b" F " + lines.replace(b"\n", b"\n" + head + b" F ") + b"\n"
        return b"".join(piece for line in lines.split(b"\n") for piece in _pieces(head, line))

    def finish(self, now_ns: int) -> bytes:
        """The stored form of an incomplete last line; empty if there is none."""
        rest, self._rest = self._rest, b""
        return stamp(now_ns) + b" " + self._stream + b" P " + rest + b"\n" if rest else b""


def _pieces(head: bytes, line: bytes) -> list[bytes]:
    whole = max(0, (len(line) - 1) // MAX_LINE_BYTES)
    parts = [head + b" P " + line[i * MAX_LINE_BYTES : (i + 1) * MAX_LINE_BYTES] + b"\n" for i in range(whole)]
    return [*parts, head + b" F " + line[whole * MAX_LINE_BYTES :] + b"\n"]


def parse(stored: bytes) -> LogLine | None:
    """Parse a line of a log file (without its newline); None for a line that is not in the format."""
    fields = stored.split(b" ", 3)
    if len(fields) != 4 or fields[2] not in (b"F", b"P"):
        return None
    return LogLine(fields[0], fields[3], fields[2] == b"F")


def shown(line: LogLine, *, timestamps: bool, at_start: bool) -> bytes:
    """The bytes that `kubectl logs` prints for a line.

    Args:
        timestamps: whether lines begin with their timestamps.
        at_start: whether the line before was complete (the continuation of a line has no timestamp).
    """
    prefix = line.stamp + b" " if timestamps and at_start else b""
    return prefix + line.text + (b"\n" if line.is_complete else b"")
