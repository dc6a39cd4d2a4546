"""What commands beside a container use is the container's."""

from podscaler.controlplane.metrics.resource.processes import TreeReading
from podscaler.controlplane.metrics.resource.sampler import CommandUsage


def test_sum_never_steps_down() -> None:
    """CPU and memory are added; the CPU time of a command that has ended stays."""
    usage = CommandUsage()
    rounds = [
        ({1: TreeReading(10.0, 100), 2: TreeReading(1.0, 50)}, {1: frozenset({2})}),
        ({1: TreeReading(11.0, 100), 2: TreeReading(3.0, 60), 3: TreeReading(0.5, 10)}, {1: frozenset({2, 3})}),
        ({1: TreeReading(12.0, 100), 3: TreeReading(0.75, 10)}, {1: frozenset({3})}),
        ({1: TreeReading(12.0, 100)}, {1: frozenset()}),
    ]
    assert [usage.observe(readings, commands)[1] for readings, commands in rounds] == [
        TreeReading(11.0, 150),
        TreeReading(14.5, 170),
        TreeReading(15.75, 110),
        TreeReading(15.75, 100),
    ]


def test_container_that_is_gone() -> None:
    """A container that has ended has no reading, and nothing of it is kept for another one."""
    usage = CommandUsage()
    usage.observe({1: TreeReading(1.0, 1), 2: TreeReading(5.0, 1)}, {1: frozenset({2})})
    assert usage.observe({}, {}) == {}
    assert usage.observe({1: TreeReading(0.0, 1)}, {1: frozenset()}) == {1: TreeReading(0.0, 1)}
