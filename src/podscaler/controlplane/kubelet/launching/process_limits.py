"""The limits of processes: how many a container may have, and when the machine is short of them (PIDPressure).

`capabilities` calls `read_limits` once; `kubelet.pods.container_setup` limits containers by the result, and
`kubelet.node` makes conditions of it. Rules:

1. Where a cgroup with the pids controller is delegated to `up`, each container may have a quarter of the machine's
   maximum.
2. RLIMIT_NPROC is set for all containers that do not run as root. The kernel counts all processes of a user against it,
   those of other containers too, so the limit is generous: a quarter of the machine's maximum, or, where the user is
   that of `up`, three quarters of what `up` may have, so that `up` and its user's shells can still start processes.
3. RLIMIT_NPROC does not bind root.

Source: setrlimit(2), proc_sys_kernel(5), Documentation/admin-guide/cgroup-v2.rst (Linux); PIDPressure (kubelet).
"""

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OTHER_USER_RATIO: Final = 0.25
"""Of the machine's maximum: the limit of a container (rule 1), or of a user other than that of `up` (rule 2)."""
OWN_USER_RATIO: Final = 0.75
"""Of what `up` may have: the limit of containers that run as the user of `up` (rule 2)."""
PRESSURE_RATIO: Final = 0.9
"""Of the machine's maximum in use: PIDPressure begins above it."""
ROOT: Final = 0
"""The numeric id of root."""

_MAXIMA: Final = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")
_LOAD: Final = "/proc/loadavg"


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of the machine and of `up`.

    Attributes:
        user: the numeric id that `up` runs as.
        machine_max: the most processes and threads of the machine, `own_max` if /proc does not show it; 0 if unknown.
        own_max: the most of the user of `up` (RLIMIT_NPROC), 0 for no limit.
    """

    user: int = ROOT
    machine_max: int = 0
    own_max: int = 0

    def limit_of_user(self, user: int | None) -> int | None:
        """RLIMIT_NPROC of a container that runs as `user` (None: as `up`); None: no limit (rule 3), or not known."""
        effective = self.user if user is None else user
        if effective == ROOT or not self.machine_max:
            return None
        if effective != self.user:
            return max(1, int(self.machine_max * OTHER_USER_RATIO))
        return max(1, int(min(self.machine_max, self.own_max or self.machine_max) * OWN_USER_RATIO))

    def limit_of_container(self) -> int | None:
        """The most processes in the cgroup of a container (rule 1), None if the machine's maximum is unknown."""
        return max(1, int(self.machine_max * OTHER_USER_RATIO)) if self.machine_max else None

    def limitation(self, cgroup_error: str) -> str:
        """Which pods' processes are not limited, and why; empty if all are limited.

        Args:
            cgroup_error: why cgroups do not limit processes, empty if they do.
        """
        if not cgroup_error:
            return ""
        if not self.machine_max:
            return "how many processes this machine can have is not known, and no pod is limited"
        if self.user == ROOT:
            return f"the processes of containers that run as root are not limited: {cgroup_error}"
        return ""

    def is_short(self, process_count: int) -> bool:
        """Whether more than PRESSURE_RATIO of the machine's maximum is in use; False if that is unknown."""
        return self.machine_max > 0 and process_count > self.machine_max * PRESSURE_RATIO


def read_limits(user: int) -> ProcessLimits:
    """Read the limits for `up`, which runs as `user`. Blocks (reads /proc)."""
    maxima = [maximum for path in _MAXIMA if (maximum := _read_number(path)) is not None]
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    own_max = 0 if soft_limit == resource.RLIM_INFINITY else soft_limit
    return ProcessLimits(user=user, machine_max=min(maxima, default=own_max), own_max=own_max)


def count_processes() -> int:
    """How many processes and threads the machine has, 0 if unknown. Reads /proc/loadavg, which does not block."""
    try:
        *_, running_and_total, _last_pid = Path(_LOAD).read_text(encoding="ascii").split()
        _running, _, total = running_and_total.partition("/")
        return int(total)
    except (OSError, ValueError, IndexError):
        return 0


def _read_number(path: str) -> int | None:
    """The number in a file of /proc, None if it cannot be read."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
