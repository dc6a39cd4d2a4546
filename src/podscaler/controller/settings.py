"""The controller's settings: what its flags set, checked.

`podscaler.cli.settings` makes them from flags; `podscaler.controller.loop` and what it calls read them.

Source: controller.md 7.
"""

from dataclasses import dataclass, field

from podscaler.clock import NANOSECONDS
from podscaler.controller.gates import Gates


@dataclass(frozen=True, slots=True)
class Settings:
    """One value for each flag of kube-controller-manager, with its default.

    Attributes:
        concurrent_syncs: `--concurrent-horizontal-pod-autoscaler-syncs`, workers in parallel.
        sync_period_ns: `--horizontal-pod-autoscaler-sync-period`, greater than 0.
        downscale_stabilization_ns: `--horizontal-pod-autoscaler-downscale-stabilization`.
        tolerance: `--horizontal-pod-autoscaler-tolerance`, as a ratio.
        cpu_initialization_period_ns: `--horizontal-pod-autoscaler-cpu-initialization-period`.
        initial_readiness_delay_ns: `--horizontal-pod-autoscaler-initial-readiness-delay`.
        gates: `--feature-gates`.
    """

    concurrent_syncs: int = 5
    sync_period_ns: int = 15 * NANOSECONDS
    downscale_stabilization_ns: int = 300 * NANOSECONDS
    tolerance: float = 0.1
    cpu_initialization_period_ns: int = 300 * NANOSECONDS
    initial_readiness_delay_ns: int = 30 * NANOSECONDS
    gates: Gates = field(default_factory=Gates)

    @property
    def sync_period_s(self) -> float:
        """The sync period in seconds."""
        return self.sync_period_ns / NANOSECONDS
