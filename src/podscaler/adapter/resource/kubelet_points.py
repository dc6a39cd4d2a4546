"""Parses the metrics of one kubelet (/metrics/resource) into points: cumulative CPU time and memory at an instant.

`kubelet_client` feeds the lines of a response as they arrive, so that no response is held as a whole. Rules:

1. Only lines of the five metrics below count (`_METRICS`); comments and other metrics are skipped.
2. A sample without a time has that of the scrape. Where CPU and memory of a container have different times, the later
   line's time counts.
3. A sample counts as absent where its value is above VALUE_MAX, which no node has, or its time is more than SKEW_MAX_S
   from that of the scrape.
4. A pod is left out if one of its containers lacks CPU time or memory, or has none of it yet (0): its sum would be
   too small. The same holds for the node.

Source: metrics-server v0.9 (its decoder). Differs: rule 3; values that are negative, NaN or infinite count as absent;
labels may hold escapes; a container without a start time has one of 0; the number of containers is limited.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from podscaler.base.clock import NANOSECONDS

CONTAINERS_MAX: Final = 20_000
"""The number of containers that one node may report: forty times what a kubelet runs by default."""
LINE_MAX_BYTES: Final = 8192
LINE_SHOWN_BYTES: Final = 60
"""How much of an invalid line an error message shows."""
VALUE_MAX: Final = 2.0**53
"""Of seconds and of bytes: 8 PiB of memory, and CPU time of 285 million core years; larger floats lose whole units."""
SKEW_MAX_S: Final = 3600
"""Between the clocks of the node and of the adapter; kubelets report samples of the last minute."""
_MILLISECOND_NS: Final = 1_000_000
_NODE_CPU, _NODE_MEMORY = b"node_cpu_usage_seconds_total", b"node_memory_working_set_bytes"
_CPU, _MEMORY = b"container_cpu_usage_seconds_total", b"container_memory_working_set_bytes"
_STARTED = b"container_start_time_seconds"
_CONTAINER_METRICS = frozenset({_CPU, _MEMORY, _STARTED})
_METRICS = _CONTAINER_METRICS | {_NODE_CPU, _NODE_MEMORY}

_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAMPLE = re.compile(rb'(?:\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)(?:[ \t]+(-?\d{1,16}))?[ \t]*')
_LABEL = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_ESCAPE = re.compile(r'\\[\\"n]')

PodKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """Cumulative usage at an instant.

    Attributes:
        started_ns: when counting began, nanoseconds since the epoch; 0 if it is not known.
        at_ns: when it was measured, nanoseconds since the epoch.
        cpu_ns: CPU time since `started_ns`, in nanoseconds of one core.
        memory_bytes: the working set.
    """

    started_ns: int = 0
    at_ns: int = 0
    cpu_ns: int = 0
    memory_bytes: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether both CPU time and memory are known."""
        return self.cpu_ns > 0 and self.memory_bytes > 0


@dataclass(frozen=True, slots=True)
class NodePoints:
    """The points that one kubelet reported.

    Attributes:
        node: the point of the whole node; None if it is not complete.
        pods: the points of containers by name, for each complete pod.
    """

    node: UsagePoint | None = None
    pods: dict[PodKey, dict[str, UsagePoint]] = field(default_factory=dict)


class NodePointsParser:
    """Parses the response of one kubelet, line by line, into the points of its node and containers.

    Args:
        scraped_ns: the time of the scrape, for samples without one.
    """

    def __init__(self, scraped_ns: int) -> None:
        self._scraped_ns = scraped_ns
        self._node = UsagePoint()
        self._containers: dict[tuple[str, str, str], UsagePoint] = {}

    def feed(self, lines: Iterable[bytes]) -> None:
        """Read some lines. Raises ValueError for a line that is no sample, and where there are too many containers."""
        for line in lines:
            if len(line) > LINE_MAX_BYTES:
                raise ValueError(f"a line has {len(line)} bytes, more than {LINE_MAX_BYTES}")
            name = _NAME.match(line)
            if name is None:
                if line.strip() and not line.lstrip().startswith(b"#"):
                    raise ValueError(f"{_line_text(line)} is no sample")
            elif name[0] in _METRICS:
                self._add_sample(name[0], line, name.end())

    def points(self) -> NodePoints:
        """The points of all lines so far."""
        pods: dict[PodKey, dict[str, UsagePoint]] = {}
        incomplete: set[PodKey] = set()
        for (namespace, pod, container), point in self._containers.items():
            pods.setdefault((namespace, pod), {})[container] = point
            if not point.is_complete:
                incomplete.add((namespace, pod))
        complete = {key: containers for key, containers in pods.items() if key not in incomplete}
        return NodePoints(self._node if self._node.is_complete else None, complete)

    def _add_sample(self, name: bytes, line: bytes, labels_start: int) -> None:
        """Take the sample of a line; its labels begin behind the metric's name. Raises ValueError."""
        sample = _SAMPLE.fullmatch(line, labels_start)
        if sample is None:
            raise ValueError(f"{_line_text(line)} is no sample")
        labels, number_text, milliseconds = sample.groups()
        try:
            value = float(number_text)
        except ValueError:
            raise ValueError(f"{_line_text(line)} has no number") from None
        if not 0 <= value <= VALUE_MAX:
            return
        at_ns = self._scraped_ns if milliseconds is None else int(milliseconds) * _MILLISECOND_NS
        if abs(at_ns - self._scraped_ns) > SKEW_MAX_S * NANOSECONDS:
            return
        if name in _CONTAINER_METRICS:
            self._add_container_sample(name, labels or b"", value, at_ns)
        else:
            self._node = _with_value(self._node, is_cpu=name == _NODE_CPU, value=value, at_ns=at_ns)

    def _add_container_sample(self, name: bytes, labels: bytes, value: float, at_ns: int) -> None:
        """Take a sample of a container; one without namespace, pod or container name is skipped. Raises ValueError."""
        values_by_label = {label.decode(): _unescaped(label_value) for label, label_value in _LABEL.findall(labels)}
        key = values_by_label.get("namespace", ""), values_by_label.get("pod", ""), values_by_label.get("container", "")
        if not all(key):
            return
        if len(self._containers) >= CONTAINERS_MAX and key not in self._containers:
            raise ValueError(f"more than {CONTAINERS_MAX} containers")
        point = self._containers.get(key, UsagePoint())
        if name == _STARTED:
            self._containers[key] = replace(point, started_ns=round(value * NANOSECONDS))
        else:
            self._containers[key] = _with_value(point, is_cpu=name == _CPU, value=value, at_ns=at_ns)


def _with_value(point: UsagePoint, *, is_cpu: bool, value: float, at_ns: int) -> UsagePoint:
    """The point with a sample of the CPU time (seconds) or of the memory (bytes)."""
    if is_cpu:
        return replace(point, cpu_ns=int(value * NANOSECONDS), at_ns=at_ns)
    return replace(point, memory_bytes=int(value), at_ns=at_ns)


def _unescaped(label_value: bytes) -> str:
    """The text of a label's value between its quotes."""
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], label_value.decode("utf-8", "replace"))


def _line_text(line: bytes) -> str:
    """The beginning of a line in quotes, for error messages."""
    line_start = line[:LINE_SHOWN_BYTES].decode("utf-8", "replace")
    return repr(f"{line_start}..." if len(line) > LINE_SHOWN_BYTES else line_start)
