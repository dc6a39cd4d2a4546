"""Renders metric families in Prometheus' text format, with the timestamp of the readings where a sample has one.

`kubelet.server.resource_metrics` and `cadvisor_metrics` call `render`; `kubelet_pages` uses CONTENT_TYPE. Families
without samples are left out, as in kubelet. A page orders its families and labels itself.

Source: Prometheus' text-based exposition format, version 0.0.4.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
NANOSECONDS_PER_MS: Final = 1_000_000


class MetricFamily(NamedTuple):
    """A metric.

    Attributes:
        help: the help text, with the stability in brackets where upstream states it.
        type: `counter` or `gauge`.
    """

    name: str
    help: str
    type: str


class MetricSample(NamedTuple):
    """One sample: labels by name in order, and whether it has the timestamp of the reading."""

    labels: dict[str, str]
    value: float
    has_time: bool = True


def render(families: Iterable[tuple[MetricFamily, Sequence[MetricSample]]], at_ns: int | None) -> bytes:
    """The text of families in the given order, UTF-8.

    Args:
        families: each with its samples.
        at_ns: the time of the readings, nanoseconds since the epoch; None: no sample has a timestamp.
    """
    lines: list[str] = []
    for family, samples in families:
        if samples:
            lines.append(f"# HELP {family.name} {family.help}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines += [_sample_line(family.name, sample, at_ns) for sample in samples]
    return "".join(f"{line}\n" for line in lines).encode()


def _sample_line(name: str, sample: MetricSample, at_ns: int | None) -> str:
    """The line of a sample: name{labels} value timestamp in milliseconds."""
    labels = ",".join(f'{label}="{_escape_label_value(value)}"' for label, value in sample.labels.items())
    series = f"{name}{{{labels}}}" if labels else name
    timestamp = f" {at_ns // NANOSECONDS_PER_MS}" if at_ns is not None and sample.has_time else ""
    return f"{series} {_format_number(sample.value)}{timestamp}"


def _escape_label_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _format_number(value: float) -> str:
    """A number with the fewest digits that are exact: 12.25, 0."""
    return repr(float(value)).removesuffix(".0")
