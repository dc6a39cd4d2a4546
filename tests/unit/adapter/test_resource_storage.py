"""Usage from two points: rates, restarts, new containers, nodes that do not answer."""

import pytest

from podscaler.adapter.resource.kubelet_points import NodePoints, UsagePoint
from podscaler.adapter.resource.usage_storage import MeasuredUsage, UsageStorage

S = 1_000_000_000
RESOLUTION_NS = 15 * S
POD = ("ns", "p")


def _point(at_s: float, cpu_s: float, *, started_s: float = -1000, memory: int = 100) -> UsagePoint:
    return UsagePoint(round(started_s * S), round(at_s * S), round(cpu_s * S), memory)


def _pod(**containers: UsagePoint) -> NodePoints:
    return NodePoints(None, {POD: containers})


def _stored(*batches: NodePoints) -> UsageStorage:
    """The storage after scrapes of the node n, 15 s apart."""
    storage = UsageStorage(RESOLUTION_NS)
    for number, batch in enumerate(batches):
        storage.store("n", batch, (100 + 15 * number) * S)
    return storage


@pytest.mark.parametrize(
    ("batches", "usage"),
    [
        pytest.param([_point(100, 5)], None, id="one point"),
        pytest.param([_point(100, 5), _point(110, 10)], MeasuredUsage(S // 2, 100, 110 * S, 10 * S), id="two"),
        pytest.param(
            [_point(100, 5), _point(110, 10), _point(130, 10)], MeasuredUsage(0, 100, 130 * S, 20 * S), id="three"
        ),
        pytest.param(
            [_point(100, 5), _point(110, 10), _point(110, 10)],
            MeasuredUsage(S // 2, 100, 110 * S, 10 * S),
            id="the same point again",
        ),
        pytest.param([_point(100, 5), _point(100, 5)], None, id="the same point at first"),
        pytest.param([_point(100, 5), _point(90, 4)], None, id="an older point"),
        pytest.param([_point(100, 5), _point(110, 4)], None, id="a counter that falls"),
        pytest.param([_point(100, 5), _point(150, 1, started_s=105)], None, id="a restart"),
        pytest.param(
            [_point(100, 3, started_s=90)], MeasuredUsage(3 * S // 10, 100, 100 * S, 10 * S), id="10 s after the start"
        ),
        pytest.param([_point(100, 3, started_s=91)], None, id="9 s after the start"),
        pytest.param([_point(100, 3, started_s=85)], None, id="15 s after the start"),
    ],
)
def test_the_usage_of_a_container(batches: list[UsagePoint], usage: MeasuredUsage | None) -> None:
    """It is the increase between the last two points, or since a recent start."""
    found = _stored(*[_pod(c=point) for point in batches]).find_pod(*POD)
    assert found == (None if usage is None else {"c": usage})


def test_a_pod_needs_the_usage_of_all_containers() -> None:
    """A container that was added has none yet."""
    storage = _stored(_pod(a=_point(100, 1)), _pod(a=_point(110, 2), b=_point(110, 2)))
    assert storage.find_pod(*POD) is None


def test_containers_are_in_the_order_of_their_names() -> None:
    """Whatever the kubelet's order is."""
    storage = _stored(_pod(b=_point(100, 1), a=_point(100, 1)), _pod(b=_point(110, 2), a=_point(110, 2)))
    assert list(storage.find_pod(*POD) or ()) == ["a", "b"]


def test_the_usage_of_a_node() -> None:
    """It is that of two points."""
    storage = _stored(NodePoints(_point(100, 5)), NodePoints(_point(110, 25)))
    assert storage.find_node("n") == MeasuredUsage(2 * S, 100, 110 * S, 10 * S)
    assert storage.find_node("other") is None


def test_a_pod_that_is_gone() -> None:
    """Nothing of it is kept."""
    storage = _stored(_pod(c=_point(100, 1)), NodePoints())
    assert (storage.find_pod(*POD), len(storage)) == (None, 0)


def test_a_pod_that_moved_to_another_node() -> None:
    """The node that had it takes nothing away from the one that has it."""
    storage = _stored(_pod(c=_point(100, 1)))
    storage.store("m", _pod(c=_point(200, 1)), 200 * S)
    storage.store("m", _pod(c=_point(210, 6)), 210 * S)
    storage.store("n", NodePoints(), 215 * S)
    assert storage.find_pod(*POD) == {"c": MeasuredUsage(S // 2, 100, 210 * S, 10 * S)}


@pytest.mark.parametrize(
    ("now_s", "nodes", "pods"),
    [
        pytest.param(145, ["n"], 1, id="three resolutions later"),
        pytest.param(145.1, ["n"], 0, id="a little later than that"),
        pytest.param(101, [], 0, id="the node is gone"),
    ],
)
def test_nodes_that_are_not_scraped_any_more(now_s: float, nodes: list[str], pods: int) -> None:
    """Their points stay for three resolutions, and go with the node."""
    storage = _stored(_pod(c=_point(100, 1)))
    storage.drop_stale(round(now_s * S), nodes)
    assert len(storage) == pods
