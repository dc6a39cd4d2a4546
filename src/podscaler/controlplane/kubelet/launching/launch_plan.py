"""How the program of a container is started: directly, or by the launcher where it needs mounts, a cgroup, a limit, a
terminal or the translation of low ports.

`launch` makes a `Launch` from a pod; `container_run` starts it and runs further commands beside it (exec probes and
hooks). Pure.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.launching import seccomp, terminals
from podscaler.controlplane.kubelet.launching.port_translation import PortTrap
from podscaler.controlplane.kubelet.processes import process_identity as identity
from podscaler.controlplane.kubelet.processes.processes import ProcessSpec

LAUNCHER: Final = Path(__file__).with_name("launcher.py")
LAUNCHER_ENV: Final[Mapping[str, str]] = {"PATH": "/usr/bin:/bin"}
"""All that the launcher is started with, but for the marks. It has the rights of `up`, with which a container's
environment (LD_PRELOAD, PYTHONPATH) would act: that one is a part of the plan."""
MARKS: Final = (identity.INSTANCE_VARIABLE, identity.CONTAINER_VARIABLE)


@dataclass(frozen=True, slots=True)
class Identity:
    """Numeric ids that a container runs as, None keeps those of `up`."""

    user: int
    group: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, and the path at which the container sees it.

    Attributes:
        sub_path: what of a source that is a folder, empty for all of it. Containers can change what is there at any
            time, so that it is looked up once, by the launcher, without leaving the source.
    """

    source: str
    target: str
    read_only: bool
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that a container's process is started with.

    Attributes:
        mounts: parents before children.
        scratch: an existing empty folder, needed with mounts.
        cgroup: the folder of the cgroup to join, empty for none.
        tty: whether its standard streams are a terminal.
        stdin: whether it has an input that clients can attach to.
        max_processes: how many processes its user may have (RLIMIT_NPROC), None for as many as `up` may.
        port_trap: what translates the ports in its calls, None where that is not needed or not possible.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    identity: Identity | None = None
    mounts: tuple[Mount, ...] = ()
    scratch: str = ""
    cgroup: str = ""
    tty: bool = False
    stdin: bool = False
    max_processes: int | None = None
    port_trap: PortTrap | None = None

    @property
    def needs_launcher(self) -> bool:
        """Whether its processes cannot be started directly."""
        return bool(self.mounts or self.cgroup or self.max_processes is not None or self.port_trap)


def process_spec(launch: Launch) -> ProcessSpec:
    """What to start for the container itself."""
    if launch.needs_launcher or launch.tty:
        mounts = [asdict(mount) for mount in launch.mounts]
        return _by_launcher(launch, launch.argv, mounts=mounts, scratch=launch.scratch, tty=launch.tty)
    return _directly(launch, launch.argv)


def exec_spec(launch: Launch, argv: tuple[str, ...], *, pid: int, tty: bool = False) -> ProcessSpec:
    """What to start for a command in the container that runs as `pid`, `tty`: with a terminal as its streams."""
    if launch.needs_launcher or tty:
        return _by_launcher(launch, argv, enter=pid if launch.mounts else 0, tty=tty)
    return _directly(launch, argv)


def _directly(launch: Launch, argv: tuple[str, ...]) -> ProcessSpec:
    ids = launch.identity
    return ProcessSpec(
        argv=argv,
        env=launch.env,
        cwd=launch.cwd,
        user=ids.user if ids else None,
        group=ids.group if ids else None,
        groups=ids.groups if ids else (),
    )


def _by_launcher(launch: Launch, argv: tuple[str, ...], **more: Any) -> ProcessSpec:
    ids = launch.identity
    term = {"TERM": terminals.NAME} if more.get("tty") and "TERM" not in launch.env else {}
    plan: dict[str, Any] = {
        "argv": argv,
        "env": {**launch.env, **term},
        "cwd": launch.cwd,
        "user": ids.user if ids else None,
        "group": ids.group if ids else None,
        "groups": ids.groups if ids else (),
        "cgroup": launch.cgroup,
        "max_processes": launch.max_processes,
        "mounts": [],
        "scratch": "",
        "enter": 0,
        "tty": False,
        "trap": seccomp.plan() if launch.port_trap else None,
    }
    marks = {name: launch.env[name] for name in MARKS if name in launch.env}
    command = (sys.executable, "-I", "-S", str(LAUNCHER))
    adopt = launch.port_trap.adopt if launch.port_trap else None
    given = json.dumps(plan | more).encode()
    return ProcessSpec(argv=command, env={**LAUNCHER_ENV, **marks}, cwd="/", plan=given, adopt=adopt)
