"""The configuration of a container's process, and how the process is started: directly or by the launcher.

`kubelet.pods.container_setup` makes a `ContainerConfig`, like the CRI's message of that name; `container_process`
starts the process of `process_spec`, and `container_run` further commands beside it by `exec_spec` (exec probes, hooks,
`kubectl exec`). The launcher (`launcher.py`) is needed for mounts, a cgroup, a limit of processes, a terminal, a
network of the pod or the translation of low ports. A new field for the launcher: an entry of the plan in
`_launcher_spec`, a line in `launcher.py`, and a case in `needs_launcher`. No function has side effects.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.launching import seccomp
from podscaler.controlplane.kubelet.launching.port_translation import PortTrap
from podscaler.controlplane.kubelet.processes import process_identity, streams
from podscaler.controlplane.kubelet.processes.processes import ProcessSpec

LAUNCHER: Final = Path(__file__).with_name("launcher.py")
LAUNCHER_ENV: Final[Mapping[str, str]] = {"PATH": "/usr/bin:/bin"}
"""The launcher's environment, besides the marks. The launcher has the rights of `up`, and a container's environment
(LD_PRELOAD, PYTHONPATH) must not act with these: that environment is a part of the plan."""
MARKS: Final = (process_identity.INSTANCE_VARIABLE, process_identity.CONTAINER_VARIABLE)
"""The variables by which `kubelet.processes.orphaned_processes` finds the launcher, too."""


@dataclass(frozen=True, slots=True)
class ContainerUser:
    """The numeric ids that a container runs with; `groups` are the supplementary groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount: a file or directory of this machine, and the path at which the container sees it.

    Attributes:
        sub_path: the path within a `source` that is a directory, empty for all of it. Containers can replace files of
            the source at any time, so the launcher resolves the path once, without leaving the source.
    """

    source: str
    target: str
    read_only: bool
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """The configuration of a container's process.

    Attributes:
        env: all variables of the container, with the MARKS.
        cwd: the working directory.
        has_own_folder: whether `cwd` is a folder that the node made for the container. If a mount covers it, the
            process begins in `/`.
        user: None for the user of `up`.
        mounts: parents before children.
        root: the folder with the root file system of its image; empty: it sees the machine's.
        revealed: pairs (closed, folder) such as (/root, /root/venv): its program needs the second, and its user may not
            search the first.
        scratch: an existing empty directory, needed with mounts.
        cgroup: the directory of the cgroup to join, empty for none.
        tty: whether its standard streams are a terminal.
        stdin: whether it has a standard input that clients can attach to.
        max_processes: RLIMIT_NPROC, None for that of `up`.
        port_map: declared port -> the port that is bound in its place, for ports that may not be bound.
        port_trap: translates the ports in its system calls, None if that is not needed or not possible.
        programs: path of a program in its image -> the command that runs in place of it, in exec too.
        network: the file of the network namespace to join, empty for the machine's.
        hostname: the host name in that namespace.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    has_own_folder: bool = False
    user: ContainerUser | None = None
    mounts: tuple[Mount, ...] = ()
    root: str = ""
    revealed: tuple[tuple[str, str], ...] = ()
    scratch: str = ""
    cgroup: str = ""
    tty: bool = False
    stdin: bool = False
    max_processes: int | None = None
    port_map: Mapping[int, int] = field(default_factory=dict)
    port_trap: PortTrap | None = None
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    network: str = ""
    hostname: str = ""

    @property
    def needs_launcher(self) -> bool:
        """Whether all its processes are started by the launcher; others are started by it if they have a terminal."""
        is_limited = bool(self.cgroup) or self.max_processes is not None or self.port_trap is not None
        return self.has_mounts or is_limited or bool(self.network)

    @property
    def has_mounts(self) -> bool:
        """Whether it has a mount namespace."""
        return bool(self.mounts or self.revealed or self.root)


def process_spec(config: ContainerConfig) -> ProcessSpec:
    """How to start the container's main process."""
    if config.needs_launcher or config.tty:
        mount_entries = {
            "mounts": [asdict(mount) for mount in config.mounts],
            "revealed": config.revealed,
            "scratch": config.scratch,
            "root": config.root,
        }
        return _launcher_spec(config, config.argv, **mount_entries, tty=config.tty)
    return _direct_spec(config, config.argv)


def exec_spec(config: ContainerConfig, argv: tuple[str, ...], *, pid: int, tty: bool = False) -> ProcessSpec:
    """How to start a command in the container whose main process is `pid`; `tty`: its streams are a terminal."""
    # a program of the image is replaced, as `container_setup` has done in `config.argv`
    command_line = (config.programs.get(argv[0], argv[:1]) + argv[1:]) if argv else argv
    if config.needs_launcher or tty:
        return _launcher_spec(config, command_line, enter=pid if config.has_mounts else 0, tty=tty)
    return _direct_spec(config, command_line)


def _direct_spec(config: ContainerConfig, argv: tuple[str, ...]) -> ProcessSpec:
    """`argv` as the process to start, without the launcher."""
    return ProcessSpec(argv=argv, env=config.env, cwd=config.cwd, **_user_and_groups(config))


def _user_and_groups(config: ContainerConfig) -> dict[str, Any]:
    """The ids that the process changes to, as fields of ProcessSpec and of the launcher's plan; None: unchanged."""
    user = config.user
    if user is None:
        return {"user": None, "group": None, "groups": ()}
    return {"user": user.uid, "group": user.gid, "groups": user.groups}


def _launcher_spec(config: ContainerConfig, argv: tuple[str, ...], **plan_entries: Any) -> ProcessSpec:
    """The launcher as the process to start, with its plan for `argv` (`launcher.py` says what each entry means).

    Args:
        plan_entries: entries of the plan that differ from those of a command without mounts and terminal.
    """
    term = {"TERM": streams.TERMINAL_NAME} if plan_entries.get("tty") and "TERM" not in config.env else {}
    plan: dict[str, Any] = {
        "argv": argv,
        "env": {**config.env, **term},
        "cwd": config.cwd,
        "has_own_folder": config.has_own_folder,
        **_user_and_groups(config),
        "cgroup": config.cgroup,
        "network": config.network,
        "hostname": config.hostname,
        "max_processes": config.max_processes,
        "mounts": [],
        "revealed": [],
        "root": "",
        "scratch": "",
        "enter": 0,
        "tty": False,
        "trap": seccomp.filter_plan() if config.port_trap else None,
    }
    marks = {name: config.env[name] for name in MARKS if name in config.env}
    command = (sys.executable, "-I", "-S", str(LAUNCHER))
    adopt = config.port_trap.adopt_listener if config.port_trap else None
    plan_json = json.dumps(plan | plan_entries).encode()
    return ProcessSpec(argv=command, env={**LAUNCHER_ENV, **marks}, cwd="/", plan=plan_json, adopt_listener=adopt)
