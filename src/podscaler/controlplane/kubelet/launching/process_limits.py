"""How many processes a container may have, and how many the machine has.

`capabilities` reads it once, `launch` limits containers by it, and the Node's conditions show it (`node`). Rules:

1. Where a cgroup with the pids controller is delegated to `up`, each container gets a quarter of what the machine can
   have.
2. Everywhere, RLIMIT_NPROC is set for containers whose user it binds. The kernel counts all processes of a user
   against it, those of other containers too. So it is generous, a quarter of what the machine can have; and where the
   user is that of `up`, three quarters of what `up` may have, so that `up` and its user's shells can still start some.
3. It does not bind root.

Source: setrlimit(2), proc(5), Documentation/admin-guide/cgroup-v2.rst (Linux); kubelet's PIDPressure.
"""

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OTHER_USER_RATIO: Final = 0.25
OWN_USER_RATIO: Final = 0.75
PRESSURE_RATIO: Final = 0.9
ROOT: Final = 0

_MAXIMA: Final = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")
_LOAD: Final = "/proc/loadavg"


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What the machine allows.

    Attributes:
        user: the numeric id that `up` runs as.
        machine: how many processes and threads the machine can have, 0 where that is not known.
        own: how many of them the user of `up` may have, 0 for no limit.
    """

    user: int = ROOT
    machine: int = 0
    own: int = 0

    def of_user(self, user: int | None) -> int | None:
        """RLIMIT_NPROC of a container of this user (None: as `up`); None where it would bind nobody."""
        effective = self.user if user is None else user
        if effective == ROOT or not self.machine:
            return None
        if effective != self.user:
            return max(1, int(self.machine * OTHER_USER_RATIO))
        return max(1, int(min(self.machine, self.own or self.machine) * OWN_USER_RATIO))

    def of_container(self) -> int | None:
        """What the cgroup of one container may have, None where the machine's number is not known."""
        return max(1, int(self.machine * OTHER_USER_RATIO)) if self.machine else None

    def fault(self, cgroup_fault: str) -> str:
        """Which pods are not limited and why, empty where all are.

        Args:
            cgroup_fault: why cgroups do not limit processes, empty where they do.
        """
        if not cgroup_fault:
            return ""
        if not self.machine:
            return "how many processes this machine can have is not known, and no pod is limited"
        if self.user == ROOT:
            return f"the processes of containers that run as root are not limited: {cgroup_fault}"
        return ""

    def is_short(self, in_use: int) -> bool:
        """Whether the machine is about to run out."""
        return self.machine > 0 and in_use > self.machine * PRESSURE_RATIO


def read(user: int) -> ProcessLimits:
    """What this machine allows `up`, which runs as `user`. Blocks for a moment."""
    maxima = [found for path in _MAXIMA if (found := _number(path)) is not None]
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    own = 0 if soft == resource.RLIM_INFINITY else soft
    return ProcessLimits(user=user, machine=min(maxima, default=own), own=own)


def in_use() -> int:
    """How many processes and threads the machine has, 0 where that is not known. Reads memory of the kernel only."""
    try:
        return int(Path(_LOAD).read_text(encoding="ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
