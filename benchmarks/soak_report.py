"""What the soak prints, and whether it is what was required."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.cluster_subjects import quantile
from benchmarks.controller_loop import print_table
from benchmarks.soak_faults import Fault
from benchmarks.soak_syncs import Syncs

GROWTH_LIMIT_RATIO = 1.05
SHOWN_LATE = 5
AROUND_S = 30.0
"""Memory at an instant is the median of what was sampled this long before and after."""


@dataclass(frozen=True)
class Report:
    """Everything that was seen.

    Attributes:
        minutes: how long faults were injected.
        syncs: of every autoscaler.
        faults: in their order.
        memory: seconds since the beginning and MiB of the controller.
        cpu_s: that the controller used.
        lateness: of syncs, as words.
    """

    minutes: float
    syncs: Syncs
    faults: Sequence[Fault]
    memory: Sequence[tuple[float, float]]
    cpu_s: float
    lateness: str

    def tell(self, limit_s: float, baseline_at_s: float) -> bool:
        """Print it; whether no autoscaler waited longer than `limit_s` after a fault, and memory did not grow."""
        waits = {fault: self.syncs.waits_s(fault.ended_s) for fault in self.faults}
        self._tell_faults(waits, limit_s)
        self._tell_late(limit_s)
        late = sum(wait > limit_s for each in waits.values() for wait in each)
        before, after = self._memory_mib(baseline_at_s), self._memory_mib(self.memory[-1][0])
        syncs = self.syncs.count
        print(f"   memory {before:.1f} MiB at {baseline_at_s / 60:.1f} minutes, {after:.1f} MiB at the end: ", end="")
        print(f"{after / before:.3f} times; at most {max(mib for _, mib in self.memory):.1f} MiB")
        print(f"   memory in MiB, at tenths of the run: {', '.join(f'{mib:.0f}' for mib in self._course_mib())}")
        print(f"   {syncs:,} syncs with good metrics, {self.syncs.failed:,} statuses without; {self.lateness}")
        print(f"   {self.cpu_s / syncs * 1000:.2f} s of the controller's CPU for 1,000 syncs, faults included")
        print(f"   not synced within {limit_s:.0f} s of a fault's end: {late} of {sum(map(len, waits.values())):,}")
        return not late and after <= GROWTH_LIMIT_RATIO * before

    def _tell_faults(self, waits: dict[Fault, list[float]], limit_s: float) -> None:
        rows = [("fault", "times", "lasted s", "first sync after its end: p50", "p99", "most s", "late")]
        for kind in sorted({fault.kind for fault in self.faults}):
            mine = [fault for fault in self.faults if fault.kind == kind]
            all_s = [wait for fault in mine for wait in waits[fault]]
            lasted = median(fault.ended_s - fault.began_s for fault in mine)
            figures = [f"{quantile(all_s, which):.1f}" for which in (0.5, 0.99)]
            late = sum(wait > limit_s for wait in all_s)
            rows.append((kind, str(len(mine)), f"{lasted:.1f}", *figures, f"{max(all_s):.1f}", str(late)))
        print_table(rows)

    def _tell_late(self, limit_s: float) -> None:
        """Print when some of those that were late were synced, in seconds from the fault's end."""
        late = [
            (fault, name, at) for fault in self.faults for name, at in self.syncs.around(fault.ended_s, limit_s).items()
        ]
        for fault, name, at in late[:SHOWN_LATE]:
            lasted_s = fault.ended_s - fault.began_s
            print(f"   late: {name} after {fault.kind!r} of {lasted_s:.1f} s, synced at {', '.join(map(str, at))} s")

    def _memory_mib(self, at_s: float) -> float:
        return median(mib for second, mib in self.memory if abs(second - at_s) <= AROUND_S)

    def _course_mib(self) -> list[float]:
        last = len(self.memory) - 1
        return [self.memory[last * tenth // 10][1] for tenth in range(11)]
