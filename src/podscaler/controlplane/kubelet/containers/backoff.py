"""How long a container waits before it is started again.

Used by `container_state` when a container ends. The first restart is immediate; then 10 s, doubling to 300 s; a
container that ran for more than ten minutes starts over. Pure: instants are arguments (nanoseconds).

Source: kubelet, "Container restarts" and "CrashLoopBackOff" (Kubernetes documentation, Pod Lifecycle).
"""

from dataclasses import dataclass
from typing import Final

from podscaler.base.clock import NANOSECONDS

FIRST_DELAY_S: Final = 10
MAX_DELAY_S: Final = 300
FORGET_AFTER_S: Final = 600

CONFIG_FIRST_DELAY_S: Final = 1
CONFIG_MAX_DELAY_S: Final = 15
"""A container that cannot be created (a missing ConfigMap, ...) is tried again soon: somebody is about to mend it."""


@dataclass(frozen=True, slots=True)
class CrashLoopBackoff:
    """What is remembered of a container's restarts.

    Attributes:
        delay_s: what the next restart has to wait; 0 before the first one.
        restarted_ns: when the last restart was due.
    """

    delay_s: int = 0
    restarted_ns: int = 0

    def after_exit(self, finished_ns: int) -> tuple["CrashLoopBackoff", int]:
        """The memory after an exit at `finished_ns`, and the instant from which the container may be started again."""
        delay_s = 0 if finished_ns - self.restarted_ns > FORGET_AFTER_S * NANOSECONDS else self.delay_s
        due_ns = finished_ns + delay_s * NANOSECONDS
        next_delay_s = min(delay_s * 2, MAX_DELAY_S) if delay_s else FIRST_DELAY_S
        return CrashLoopBackoff(next_delay_s, due_ns), due_ns


def config_delay_s(failures: int) -> int:
    """Seconds to wait after the n-th failure in a row (n from 1) to create a container."""
    return min(CONFIG_FIRST_DELAY_S << min(failures - 1, 10), CONFIG_MAX_DELAY_S)
