"""The Node object: this machine as the API shows it, and the Lease by which it is known to be alive.

`node_agent` registers the node before it runs pods, and renews lease and status until it stops.

Source: Node (API reference); Nodes, "Node heartbeats" (Kubernetes documentation).
"""

import os
import platform
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from podscaler.api.machinery import names
from podscaler.base.clock import Clock, rfc3339, rfc3339_micro
from podscaler.base.errors import StatusError
from podscaler.base.version import __version__
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.kubelet.launching import process_limits
from podscaler.controlplane.kubelet.launching.process_limits import ProcessLimits
from podscaler.controlplane.kubelet.processes.settings import RuntimeSettings
from podscaler.controlplane.registry.registry import Object, Registry

KUBELET_VERSION: Final = "v1.37.0"
LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_DURATION_S: Final = 40
STATUS_PERIOD_S: Final = 300
PID_PRESSURE: Final = "PIDPressure"
PROCESS_LIMITS: Final = "ProcessLimitsEnforced"
"""Our condition for what `process_limits` can and cannot do."""
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """What is read from the machine once.

    Attributes:
        faults: what this machine does not allow: condition type -> the sentence; empty for what works.
        processes: how many processes it can have.
    """

    name: str
    address: str
    cidr: str
    capacity: Mapping[str, str]
    info: Mapping[str, Any]
    faults: Mapping[str, str]
    processes: ProcessLimits = field(default_factory=ProcessLimits)


def node_name(settings: RuntimeSettings, remembered: Path) -> str:
    """The node's name: the setting, or what it was last time, or this machine's. Blocks. Raises UsageError."""
    if settings.node_name:
        return settings.node_name
    try:
        name = remembered.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        name = ""
    if not name or names.dns_subdomain_faults(name):
        name = _machine_name()
        secret_files.write(remembered, f"{name}\n".encode())
    return name


def _machine_name() -> str:
    name = socket.gethostname().lower()
    return "podscaler" if names.dns_subdomain_faults(name) else name


def capacity(settings: RuntimeSettings) -> dict[str, str]:
    """The machine's resources, as quantities. Blocks."""
    return {
        "cpu": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
        "memory": f"{psutil.virtual_memory().total // 1024}Ki",
        "ephemeral-storage": f"{psutil.disk_usage(str(settings.data_dir)).total // 1024}Ki",
        "pods": str(settings.max_pods),
    }


def info() -> dict[str, str]:
    """Node.status.nodeInfo. Blocks."""
    machine_id = _first_line("/etc/machine-id")
    return {
        "machineID": machine_id,
        "systemUUID": machine_id,
        "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": platform.release(),
        "osImage": _os_image(),
        "containerRuntimeVersion": f"podscaler://{__version__}",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux" if sys.platform == "linux" else platform.system().lower(),
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return f"{platform.system()} {platform.release()}"


class NodeObject:
    """Keeps the Node and its Lease true."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        settings: RuntimeSettings,
        machine: MachineInfo,
        *,
        processes_in_use: Callable[[], int] = process_limits.in_use,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._settings = settings
        self._machine = machine
        self._began_ns = clock.now_ns()
        self._processes_in_use = processes_in_use
        self._was_short_of_pids = False

    async def register(self) -> None:
        """Create the Node or bring it up to date. Raises StatusError."""
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._machine.name, "labels": self._labels()},
            "spec": {"podCIDR": self._machine.cidr, "podCIDRs": [self._machine.cidr]},
        }
        if self._registry.find("nodes", "", self._machine.name) is None:
            await self._registry.create("nodes", node)
        await self._registry.mutate("nodes", "", self._machine.name, self._refresh_spec)
        await self._write_status()

    async def beat(self) -> None:
        """Renew the Lease, and from time to time the status, until cancelled. Raises StatusError."""
        status_due_s = self._clock.monotonic_s() + STATUS_PERIOD_S
        while True:
            await self._renew_lease()
            is_due = self._clock.monotonic_s() >= status_due_s
            if is_due or self._is_short_of_pids() != self._was_short_of_pids:
                await self._write_status()
            if is_due:
                status_due_s += STATUS_PERIOD_S
            await self._clock.sleep(self._settings.heartbeat_s)

    def _labels(self) -> dict[str, str]:
        name, facts = self._machine.name, self._machine.info
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": facts["operatingSystem"],
            "kubernetes.io/arch": facts["architecture"],
            "beta.kubernetes.io/os": facts["operatingSystem"],
            "beta.kubernetes.io/arch": facts["architecture"],
            **self._settings.labels,
        }

    def _refresh_spec(self, node: Object) -> None:
        """The node is ready as soon as it is here: the taint of new nodes goes."""
        node["metadata"].setdefault("labels", {}).update(self._labels())
        spec = node.setdefault("spec", {})
        spec["taints"] = [taint for taint in spec.get("taints") or [] if taint.get("key") != NOT_READY_TAINT]
        if not spec["taints"]:
            del spec["taints"]

    async def _write_status(self) -> None:
        self._was_short_of_pids = self._is_short_of_pids()

        def change(node: Object) -> None:
            now = rfc3339(self._clock.now_ns())
            status = node.setdefault("status", {})
            former = {entry["type"]: entry for entry in status.get("conditions") or []}
            status |= {
                "capacity": dict(self._machine.capacity),
                "allocatable": dict(self._machine.capacity),
                "addresses": [
                    {"type": "InternalIP", "address": self._machine.address},
                    {"type": "Hostname", "address": self._machine.name},
                ],
                "nodeInfo": dict(self._machine.info),
                "conditions": [_shown(entry, former.get(entry["type"]), now) for entry in self._conditions()],
            }

        await self._registry.mutate("nodes", "", self._machine.name, change, subresource="status")

    def _conditions(self) -> list[Object]:
        pressures = (
            ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        )
        return [
            *(_condition(type_, "False", reason, message) for type_, reason, message in pressures),
            self._pid_pressure(),
            *(_ability(type_, fault) for type_, fault in self._machine.faults.items()),
            _condition("Ready", "True", "KubeletReady", "podscaler runs pods as processes of this machine"),
        ]

    def _pid_pressure(self) -> Object:
        """As kubelet says it; where pods can take all there are, the message says that, too."""
        if self._is_short_of_pids():
            return _condition(
                PID_PRESSURE, "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"
            )
        message = "kubelet has sufficient PID available"
        if fault := self._machine.faults.get(PROCESS_LIMITS):
            message += f"; {fault}"
        return _condition(PID_PRESSURE, "False", "KubeletHasSufficientPID", message)

    def _is_short_of_pids(self) -> bool:
        return self._machine.processes.is_short(self._processes_in_use())

    async def _renew_lease(self) -> None:
        now = rfc3339_micro(self._clock.now_ns())
        name = self._machine.name
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_DURATION_S, "renewTime": now}
        try:
            await self._registry.mutate(
                "leases.coordination.k8s.io", LEASE_NAMESPACE, name, lambda lease: lease["spec"].update(spec)
            )
        except StatusError as error:
            if error.code != 404:
                raise
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
                "spec": spec,
            }
            await self._registry.create("leases.coordination.k8s.io", lease)


def _ability(type_: str, fault: str) -> Object:
    if fault:
        return _condition(type_, "False", "NotPossible", fault)
    return _condition(type_, "True", "Possible", "this machine allows it")


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _shown(condition: Object, former: Mapping[str, Any] | None, now: str) -> Object:
    same = former is not None and former["status"] == condition["status"]
    since = former["lastTransitionTime"] if same and former else now
    return condition | {"lastHeartbeatTime": now, "lastTransitionTime": since}
