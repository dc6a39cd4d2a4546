"""Enforces requests and limits by cgroup v2, where a part of the hierarchy is delegated to `up`.

`kubelet.startup` calls `set_up` once. `container_setup` calls `Cgroups.make` for each start of a container, whose
launcher joins the cgroup before it executes the program; `container_run` calls `Cgroups.remove` after its end. All
functions block for a few writes to the kernel's file system at most. A new limit: a file in `limits`, and its
controller in CONTROLLERS.

A cgroup that has processes of its own cannot delegate controllers (the "no internal processes" rule), so `up` moves
itself into a child cgroup first. Where other processes are in the same cgroup, nothing is changed and limits are not
enforced.

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
"""An optional controller."""
CPU_PERIOD_US: Final = 100_000
_QUOTA_MIN_US: Final = 1000
"""The least CPU time in a period that the kernel accepts."""
_WEIGHT_MAX: Final = 10_000
"""The largest `cpu.weight` that the kernel accepts."""
_MILLI_PER_CORE: Final = 1000
_MILLICORES_PER_WEIGHT: Final = 10
"""A request of one core is the default weight, 100."""


@dataclass(frozen=True, slots=True)
class Cgroups:
    """A delegated part of the hierarchy, with a cgroup for each container.

    Attributes:
        root: the directory in which the cgroups of containers are made.
        pids_error: why the number of processes is not limited, empty if it is.
    """

    root: Path
    pids_error: str = ""

    def make(self, container_id: str, resources: Mapping[str, Any], *, pids_max: int | None = None) -> Path:
        """Make the cgroup of a container and set its limits; returns its directory. Raises OSError, QuantityError.

        Args:
            resources: of the core/v1 Container.
            pids_max: the most processes, None for no limit; ignored where processes cannot be limited.
        """
        folder = self.root / container_id
        folder.mkdir(exist_ok=True)
        contents = limits(resources)
        if pids_max is not None and not self.pids_error:
            contents["pids.max"] = str(pids_max)
        for name, content in contents.items():
            (folder / name).write_text(content, encoding="ascii")
        return folder

    def remove(self, container_id: str) -> bool:
        """Kill the processes in the container's cgroup and remove it; returns whether one was OOM-killed in it."""
        folder = self.root / container_id
        if not folder.exists():
            return False
        with contextlib.suppress(OSError):
            (folder / "cgroup.kill").write_text("1", encoding="ascii")
        was_oom_killed = _oom_kills(folder) > 0
        with contextlib.suppress(OSError):  # busy while a process is being killed; an empty cgroup costs nothing
            folder.rmdir()
        return was_oom_killed


def limits(resources: Mapping[str, Any]) -> dict[str, str]:
    """The files of a cgroup for a container's `resources`: name -> content. Raises QuantityError."""
    limits_by_resource = resources.get("limits") or {}
    requests = {**limits_by_resource, **(resources.get("requests") or {})}  # a limit is the default of the request
    contents = {}
    if "cpu" in limits_by_resource:
        quota_us = max(_QUOTA_MIN_US, _millicores(limits_by_resource["cpu"]) * CPU_PERIOD_US // _MILLI_PER_CORE)
        contents["cpu.max"] = f"{quota_us} {CPU_PERIOD_US}"
    if "memory" in limits_by_resource:
        contents["memory.max"] = str(Quantity.parse(str(limits_by_resource["memory"])).value())
    if "cpu" in requests:
        weight = max(1, _millicores(requests["cpu"]) // _MILLICORES_PER_WEIGHT)
        contents["cpu.weight"] = str(min(_WEIGHT_MAX, weight))
    return contents


def set_up(*, root: Path = Path("/sys/fs/cgroup"), own_cgroup_file: Path = Path("/proc/self/cgroup")) -> Cgroups | str:
    """Divide the cgroup of this process into one for itself and one for containers, if it is delegated to its user.

    Returns the part for containers, or the reason why there is none. Raises OSError.

    Args:
        root: the mount point of the hierarchy.
        own_cgroup_file: the file with the cgroup of this process.
    """
    try:
        relative = _own_path(own_cgroup_file)
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
    return _divide_cgroup(folder, [*CONTROLLERS, *({PIDS} & available)])


def _divide_cgroup(folder: Path, controllers: Sequence[str]) -> Cgroups | str:
    """Divide the cgroup of `up`; returns the part for containers, or why that is not possible. Raises OSError.

    Args:
        folder: the directory of the cgroup.
        controllers: those to enable for containers.
    """
    member_pids = set((folder / "cgroup.procs").read_text(encoding="ascii").split())
    if member_pids - {str(os.getpid())}:
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


def pids_error(cgroups: Cgroups | str) -> str:
    """Why cgroups (the result of `set_up`) do not limit the processes of containers, empty if they do."""
    return cgroups if isinstance(cgroups, str) else cgroups.pids_error


def _own_path(own_cgroup_file: Path) -> str | None:
    """The path of this process's cgroup in the v2 hierarchy, whose number is 0; None if it has none. Raises OSError."""
    for line in own_cgroup_file.read_text(encoding="utf-8").splitlines():
        hierarchy, _, path = line.split(":", 2)
        if hierarchy == "0":
            return path
    return None


def _oom_kills(folder: Path) -> int:
    """How many processes of the cgroup were OOM-killed; 0 if that cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.events").read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _millicores(amount: Any) -> int:
    """A quantity of CPU in thousandths of a core."""
    return Quantity.parse(str(amount)).milli_value()
