"""How the program of a container is started: directly, or by the launcher where it needs mounts,
a cgroup, a terminal or the translation of low ports.

`launch` makes a `Launch` from a pod; `container_run` starts it and runs further commands beside it (exec probes and
hooks). Pure.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.runtime import seccomp, terminals
from podscaler.controlplane.runtime.port_translation import PortTrap
from podscaler.controlplane.runtime.processes import ProcessSpec

LAUNCHER: Final = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True, slots=True)
class Identity:
    """Numeric ids that a container runs as, None keeps those of `up`."""

    user: int
    group: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, and the path at which the container sees it."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that a container's process is started with.

    Attributes:
        mounts: parents before children.
        scratch: an existing empty folder, needed with mounts.
        cgroup: the folder of the cgroup to join, empty for none.
        tty: whether its standard streams are a terminal.
        stdin: whether it has an input that clients can attach to.
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
    port_trap: PortTrap | None = None


def process_spec(launch: Launch) -> ProcessSpec:
    """What to start for the container itself."""
    if launch.mounts or launch.cgroup or launch.tty or launch.port_trap:
        mounts = [{"source": m.source, "target": m.target, "read_only": m.read_only} for m in launch.mounts]
        return _by_launcher(launch, launch.argv, mounts=mounts, scratch=launch.scratch, tty=launch.tty)
    return _directly(launch, launch.argv)


def exec_spec(launch: Launch, argv: tuple[str, ...], *, pid: int, tty: bool = False) -> ProcessSpec:
    """What to start for a command in the container that runs as `pid`, `tty`: with a terminal as its streams."""
    if launch.mounts or launch.cgroup or tty or launch.port_trap:
        return _by_launcher(launch, argv, enter=pid if launch.mounts else 0, tty=tty)
    return _directly(launch, argv)


def _directly(launch: Launch, argv: tuple[str, ...]) -> ProcessSpec:
    identity = launch.identity
    return ProcessSpec(
        argv=argv,
        env=launch.env,
        cwd=launch.cwd,
        user=identity.user if identity else None,
        group=identity.group if identity else None,
        groups=identity.groups if identity else (),
    )


def _by_launcher(launch: Launch, argv: tuple[str, ...], **more: Any) -> ProcessSpec:
    identity = launch.identity
    plan: dict[str, Any] = {
        "argv": argv,
        "cwd": launch.cwd,
        "user": identity.user if identity else None,
        "group": identity.group if identity else None,
        "groups": identity.groups if identity else (),
        "cgroup": launch.cgroup,
        "mounts": [],
        "scratch": "",
        "enter": 0,
        "tty": False,
        "trap": seccomp.plan() if launch.port_trap else None,
    }
    command = (sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(plan | more))
    env = {**launch.env, "TERM": terminals.NAME} if more.get("tty") and "TERM" not in launch.env else launch.env
    adopt = launch.port_trap.adopt if launch.port_trap else None
    return ProcessSpec(argv=command, env=env, cwd="/", reports=True, adopt=adopt)
