"""Detects what this machine permits: processes of other users, low ports, private mounts, limits of processes.

`kubelet.startup` calls `detect` once. `kubelet.pods.container_setup` rejects containers that need more, with the
reason; `kubelet.node_agent` makes conditions of the Node and log lines of what the machine does not permit. A new one:
a field of `Capabilities`, set in `detect`, and a limitation in `node_agent`.

Source: capabilities(7), mount_namespaces(7); ip_unprivileged_port_start in Documentation/networking/ip-sysctl.rst
(Linux).
"""

import os
import select
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from podscaler.controlplane.kubelet.launching import container_config, port_translation, process_limits, seccomp
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig, Mount
from podscaler.controlplane.kubelet.launching.port_translation import Address, PortTrap
from podscaler.controlplane.kubelet.launching.process_limits import ProcessLimits
from podscaler.controlplane.kubelet.launching.seccomp import Listener
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.processes import StartFailure

_CAP_NET_BIND_SERVICE: Final = 10
_USUAL_FIRST_PORT: Final = 1024
_NEXT_CALL_TIMEOUT_MS: Final = 10_000
"""How long `port_translation_error` waits for a system call of the program that it tries."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the machine allows.

    Attributes:
        user: the numeric id that `up` runs as.
        may_change_user: whether containers may run as another user.
        may_bind_low_ports: whether a process of `user` may bind every port.
        unprivileged_port_start: the lowest port that an ordinary user may bind (ip_unprivileged_port_start).
        mount_error: why volumes cannot be mounted, empty if they can.
        process_limits: the limits of processes.
        translates_ports: whether ports below `unprivileged_port_start` are translated in the system calls of pods, as
            `up` may not bind them.
        port_translation_error: why they cannot be translated, empty if they are or need not be.
    """

    user: int
    may_change_user: bool
    may_bind_low_ports: bool
    unprivileged_port_start: int = _USUAL_FIRST_PORT
    mount_error: str = ""
    process_limits: ProcessLimits = field(default_factory=ProcessLimits)
    translates_ports: bool = False
    port_translation_error: str = ""

    def lowest_port(self, user: int | None) -> int:
        """The lowest port that a process of `user` (None: as `up`) may bind without translation."""
        if self.may_bind_low_ports and user in (None, self.user, 0):
            return 1
        return self.unprivileged_port_start


def detect(scratch: Path) -> Capabilities:
    """Detect what the machine allows. Blocks for some 50 ms. Raises OSError.

    Args:
        scratch: an existing directory, in which a mount is tried.
    """
    user = os.geteuid()
    may_bind = _has_capability(_CAP_NET_BIND_SERVICE) if sys.platform == "linux" else user == 0
    unprivileged_port_start = _unprivileged_port_start()
    needs_translation = not may_bind and unprivileged_port_start > 1
    translation_error = port_translation_error() if needs_translation else ""
    return Capabilities(
        user=user,
        may_change_user=user == 0,
        may_bind_low_ports=may_bind,
        unprivileged_port_start=unprivileged_port_start,
        mount_error=_mount_error(scratch),
        process_limits=process_limits.read_limits(user),
        translates_ports=needs_translation and not translation_error,
        port_translation_error=translation_error,
    )


def _has_capability(number: int) -> bool:
    """Whether this process has the capability with this number of capabilities(7) in its effective set."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        field_name, _, mask_hex = line.partition(":")
        if field_name == "CapEff":
            return bool(int(mask_hex, 16) >> number & 1)
    return False


def _unprivileged_port_start() -> int:
    """The lowest port that an ordinary user may bind; 1024 where the machine has no setting for it."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return _USUAL_FIRST_PORT


def _mount_error(scratch: Path) -> str:
    """Why a volume cannot be mounted at a path that does not exist, empty if it can; tries it. Raises OSError."""
    if sys.platform != "linux":
        return "only Linux has private mounts"
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        for name in ("source", "parent", "root"):
            Path(folder, name).mkdir()
        mount = Mount(source=f"{folder}/source", target=f"{folder}/parent/missing", read_only=True)
        config = ContainerConfig(
            argv=(sys.executable, "-I", "-S", "-c", ""),
            env={},
            cwd="/",
            mounts=(mount,),
            scratch=f"{folder}/root",
        )
        try:
            processes.run_to_end(container_config.process_spec(config))
        except StartFailure as failure:
            return str(failure)
    return ""


def port_translation_error() -> str:
    """Why low ports cannot be translated in system calls, empty if they can; tries it. Blocks. Raises OSError."""
    if seccomp.filter_plan() is None:
        return "only Linux on x86_64 and aarch64 can translate the ports of programs"
    bind_program = "import socket; socket.socket().bind(('127.0.0.1', 1))"
    config = ContainerConfig(
        argv=(sys.executable, "-I", "-S", "-c", bind_program),
        env={},
        cwd="/",
        port_trap=PortTrap(_translate_to_any_port, {}),
    )
    try:
        exit_status = processes.run_to_end(container_config.process_spec(config))
    except StartFailure as failure:
        return str(failure)
    return "this machine does not allow `up` to change the calls of its pods (ptrace)" if exit_status else ""


def _translate_to_any_port(descriptor: int) -> None:
    """Translate the port of every system call to 0 (any free port), until the program has exited."""
    listener = Listener(descriptor)
    try:
        while listener.poll(timeout_ms=_NEXT_CALL_TIMEOUT_MS) & select.POLLIN:
            call = listener.receive()
            if call is not None:
                port_translation.translate_call(listener, call, _with_any_port)
    finally:
        listener.close()


def _with_any_port(address: Address, _is_bind: bool) -> Address:
    """The address with the port 0, for which the kernel chooses a free one; a `port_translation.Translate`."""
    host, _ = address
    return host, 0
