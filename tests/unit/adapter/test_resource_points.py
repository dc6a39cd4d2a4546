"""The metrics of one kubelet: what is read of each line, and which pods are complete."""

import pytest

from podscaler.adapter.resource import kubelet_points
from podscaler.adapter.resource.kubelet_points import NodePoints, NodePointsParser, UsagePoint

SCRAPED_NS = 5_000_000_000
LABELS = b'{container="c",namespace="ns",pod="p"}'
CPU, MEMORY = b"container_cpu_usage_seconds_total", b"container_memory_working_set_bytes"
START = b"container_start_time_seconds"
COMPLETE = [CPU + LABELS + b" 1.5 2000", MEMORY + LABELS + b" 1e3 2000", START + LABELS + b" 0.5"]
POINT = UsagePoint(500_000_000, 2_000_000_000, 1_500_000_000, 1000)


def _points(*lines: bytes) -> NodePoints:
    parser = NodePointsParser(SCRAPED_NS)
    parser.feed(lines)
    return parser.points()


def test_a_pod_and_its_node() -> None:
    """Comments and other metrics are skipped."""
    node = [b"node_cpu_usage_seconds_total 10 3000", b"node_memory_working_set_bytes 2048 3000"]
    found = _points(b"# HELP x y", b"", b'pod_cpu_usage_seconds_total{a="b"} nonsense', *node, *COMPLETE)
    expected_node = UsagePoint(0, 3_000_000_000, 10_000_000_000, 2048)
    assert found == NodePoints(expected_node, {("ns", "p"): {"c": POINT}})


def test_a_sample_without_a_time() -> None:
    """It has the time of the scrape."""
    found = _points(CPU + LABELS + b" 1", MEMORY + LABELS + b" 1")
    assert found.pods["ns", "p"]["c"].at_ns == SCRAPED_NS


def test_labels_in_any_order_and_with_escapes() -> None:
    """Braces, quotes and commas within values are values."""
    labels = b'{pod="p",other="a}\\",\\\\{",container="c",namespace="ns"}'
    found = _points(CPU + labels + b" 1", MEMORY + labels + b" 1")
    assert list(found.pods) == [("ns", "p")]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(MEMORY + LABELS + b" 0 2000", id="no memory"),
        pytest.param(MEMORY + LABELS + b" NaN 2000", id="memory that is no number"),
        pytest.param(MEMORY + LABELS + b" +Inf 2000", id="infinite memory"),
        pytest.param(MEMORY + LABELS + b" -5 2000", id="negative memory"),
        pytest.param(MEMORY + LABELS + b" 9007199254740994 2000", id="memory of more than 8 PiB"),
        pytest.param(MEMORY + LABELS + b" 5 3605001", id="memory of an hour ahead"),
        pytest.param(MEMORY + LABELS + b" 5 -3595001", id="memory of an hour ago"),
        pytest.param(MEMORY + LABELS + b" 5 9999999999999999", id="a time of the year 318857"),
    ],
)
def test_an_incomplete_container_leaves_out_its_pod(line: bytes) -> None:
    """Other pods stay."""
    other = [each.replace(b'pod="p"', b'pod="q"') for each in COMPLETE]
    assert list(_points(COMPLETE[0], line, *other).pods) == [("ns", "q")]


@pytest.mark.parametrize("value", [b"1e300", b"1.7e308", b"9007199254740994"])
@pytest.mark.parametrize("name", [CPU, START, MEMORY])
def test_values_that_no_node_has(name: bytes, value: bytes) -> None:
    """They count as absent, so that no integer is too large for a time or a quantity."""
    node = name.replace(b"container", b"node")
    assert _points(name + LABELS + b" " + value, node + b" " + value) == NodePoints()


def test_the_largest_values() -> None:
    """Times and values at their bounds count."""
    found = _points(CPU + LABELS + b" 9007199254740992 3605000", MEMORY + LABELS + b" 9007199254740992 3605000")
    assert found.pods["ns", "p"]["c"] == UsagePoint(0, 3605 * 10**9, 2**53 * 10**9, 2**53)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"<html>", "'<html>' is no sample"),
        (CPU + b"{ 1", "is no sample"),
        (CPU + LABELS, "is no sample"),
        (CPU + LABELS + b" many", "has no number"),
        (CPU + LABELS + b" 1 2 3", "is no sample"),
        (CPU + b'{a="' + b"x" * 9000 + b'"} 1', "a line has 9041 bytes, more than 8192"),
    ],
)
def test_lines_that_are_no_samples(line: bytes, error: str) -> None:
    """The response is then no kubelet's, and nothing of it counts."""
    with pytest.raises(ValueError, match=error):
        _points(line)


def test_too_many_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, whatever a node reports."""
    monkeypatch.setattr(kubelet_points, "CONTAINERS_MAX", 2)
    lines = [CPU + LABELS.replace(b'"c"', b'"c%d"' % number) + b" 1" for number in range(3)]
    with pytest.raises(ValueError, match="more than 2 containers"):
        _points(*lines)
