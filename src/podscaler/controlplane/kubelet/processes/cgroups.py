"""Enforcing requests and limits by cgroup v2, where a part of the hierarchy is delegated to `up`.

`node_agent` looks for it once; `launch` makes a cgroup for each container with limits, which the launcher joins before
it becomes the program. Everything blocks for no longer than a few writes to a kernel file system.

A cgroup with processes of its own cannot hand controllers on, so that `up` moves itself into a child first; where other
processes live in the same cgroup, nothing is changed and limits are not enforced.

Source: Documentation/admin-guide/cgroup-v2.rst (Linux).
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.api.machinery.quantity import Quantity

CONTROLLERS: Final = ("cpu", "memory")
PIDS: Final = "pids"
"""A controller that is used where it is there."""
CPU_PERIOD_US: Final = 100_000
_MAX_WEIGHT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Cgroups:
    """A delegated part of the hierarchy.

    Attributes:
        root: the folder below which containers get theirs.
        pids_fault: why the number of processes is not limited, empty where it is.
    """

    root: Path
    pids_fault: str = ""

    def make(self, container_id: str, resources: Mapping[str, Any], *, pids_max: int | None = None) -> Path:
        """The cgroup of a container, with its limits set. Raises OSError."""
        folder = self.root / container_id
        folder.mkdir(exist_ok=True)
        files = limits(resources)
        if pids_max is not None and not self.pids_fault:
            files["pids.max"] = str(pids_max)
        for name, value in files.items():
            (folder / name).write_text(value, encoding="ascii")
        return folder

    def remove(self, container_id: str) -> bool:
        """Kill what is left in the container's cgroup and remove it; returns whether memory ran out in it."""
        folder = self.root / container_id
        if not folder.exists():
            return False
        with contextlib.suppress(OSError):
            (folder / "cgroup.kill").write_text("1", encoding="ascii")
        ran_out = _oom_kills(folder) > 0
        with contextlib.suppress(
            OSError
        ):  # a process that is just being killed keeps it; an empty cgroup costs nothing
            folder.rmdir()
        return ran_out


def limits(resources: Mapping[str, Any]) -> dict[str, str]:
    """What to write into which file for a container's `resources`."""
    wanted = resources.get("limits") or {}
    requests = {**wanted, **(resources.get("requests") or {})}
    files = {}
    if "cpu" in wanted:
        files["cpu.max"] = f"{max(1000, _milli(wanted['cpu']) * CPU_PERIOD_US // 1000)} {CPU_PERIOD_US}"
    if "memory" in wanted:
        files["memory.max"] = str(Quantity.parse(str(wanted["memory"])).value())
    if "cpu" in requests:
        files["cpu.weight"] = str(min(_MAX_WEIGHT, max(1, _milli(requests["cpu"]) // 10)))
    return files


def find(*, root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Cgroups | str:
    """The part that is delegated to this process, or the sentence that says why there is none."""
    try:
        relative = _own_path(own)
    except FileNotFoundError:
        return "this machine has no cgroups"
    if relative is None or not (root / "cgroup.controllers").exists():
        return "this machine has no unified cgroup v2 hierarchy"
    folder = root / relative.lstrip("/")
    available = set((folder / "cgroup.controllers").read_text(encoding="ascii").split())
    missing = set(CONTROLLERS) - available
    if missing:
        return f"the cgroup of `up` has no {' and '.join(sorted(missing))} controller"
    if not os.access(folder / "cgroup.subtree_control", os.W_OK) or not os.access(folder, os.W_OK):
        return "the cgroup of `up` is not delegated to its user (systemd-run --user --scope -p Delegate=yes helps)"
    return _take_over(folder, [*CONTROLLERS, *({PIDS} & available)])


def _take_over(folder: Path, controllers: Sequence[str]) -> Cgroups | str:
    inhabitants = set((folder / "cgroup.procs").read_text(encoding="ascii").split())
    if inhabitants - {str(os.getpid())}:
        return "other processes live in the cgroup of `up`"
    try:
        supervisor = folder / "supervisor"
        supervisor.mkdir(exist_ok=True)
        (supervisor / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        enabled = " ".join(f"+{name}" for name in controllers)
        (folder / "cgroup.subtree_control").write_text(enabled, encoding="ascii")
        containers = folder / "containers"
        containers.mkdir(exist_ok=True)
        (containers / "cgroup.subtree_control").write_text(enabled, encoding="ascii")
    except OSError as error:
        return f"the cgroup of `up` cannot be divided: {error.strerror}"
    return Cgroups(containers, "" if PIDS in controllers else "the cgroup of `up` has no pids controller")


def pids_fault(found: Cgroups | str) -> str:
    """Why cgroups do not limit how many processes a container has, empty where they do."""
    return found if isinstance(found, str) else found.pids_fault


def _own_path(own: Path) -> str | None:
    for line in own.read_text(encoding="utf-8").splitlines():
        hierarchy, _, path = line.split(":", 2)
        if hierarchy == "0":
            return path
    return None


def _oom_kills(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.events").read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _milli(amount: Any) -> int:
    return Quantity.parse(str(amount)).milli_value()
