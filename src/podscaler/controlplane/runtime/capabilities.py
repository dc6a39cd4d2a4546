"""What this machine lets the node do, found out once when it starts.

`node_agent` probes; `launch` refuses what is missing with the reason, and the Node's conditions show it.
"""

import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from podscaler.controlplane.runtime import launch_plan, process_limits, processes
from podscaler.controlplane.runtime.launch_plan import Launch, Mount
from podscaler.controlplane.runtime.process_limits import ProcessLimits
from podscaler.controlplane.runtime.processes import StartFailure

_CAP_NET_BIND_SERVICE: Final = 10
_USUAL_FIRST_PORT: Final = 1024


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is possible here.

    Attributes:
        user: the numeric id that `up` runs as.
        may_change_user: whether containers may run as another user.
        may_bind_low_ports: whether a process of `user` may bind every port.
        first_port: the lowest port that an ordinary user may bind.
        mount_fault: why volumes cannot be mounted, empty where they can.
        processes: how many processes containers may have.
    """

    user: int
    may_change_user: bool
    may_bind_low_ports: bool
    first_port: int = _USUAL_FIRST_PORT
    mount_fault: str = ""
    processes: ProcessLimits = field(default_factory=ProcessLimits)

    def lowest_port(self, user: int | None) -> int:
        """The lowest port that a process of `user` (None: as `up`) may bind."""
        if self.may_bind_low_ports and user in (None, self.user, 0):
            return 1
        return self.first_port


def probe(scratch: Path) -> Capabilities:
    """Find out; blocks for a few hundredths of a second. `scratch` is an existing folder for a try."""
    user = os.geteuid()
    return Capabilities(
        user=user,
        may_change_user=user == 0,
        may_bind_low_ports=_has_capability(_CAP_NET_BIND_SERVICE) if sys.platform == "linux" else user == 0,
        first_port=_first_port(),
        mount_fault=_mount_fault(scratch),
        processes=process_limits.read(user),
    )


def _has_capability(bit: int) -> bool:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> bit & 1)
    return False


def _first_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return _USUAL_FIRST_PORT


def _mount_fault(scratch: Path) -> str:
    """Try what a pod with volumes needs: a mount where nothing was before."""
    if sys.platform != "linux":
        return "only Linux has private mounts"
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        for name in ("source", "parent", "root"):
            Path(folder, name).mkdir()
        wanted = Mount(source=f"{folder}/source", target=f"{folder}/parent/missing", read_only=True)
        launch = Launch(
            argv=(sys.executable, "-I", "-S", "-c", ""),
            env={},
            cwd="/",
            mounts=(wanted,),
            scratch=f"{folder}/root",
        )
        try:
            processes.run_to_end(launch_plan.process_spec(launch))
        except StartFailure as failure:
            return str(failure)
    return ""
