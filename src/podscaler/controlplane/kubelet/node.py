"""The Node object and its Lease: registers the node, and keeps its status and heartbeat up to date.

`kubelet.node_agent` calls `register` before it runs pods, and then runs `run` until it stops. A write of `run`
that fails is logged and tried again, and pods run meanwhile: a webhook that denies it may itself be a pod of this node.

Source: Node (API reference); Nodes, "Node heartbeats" (Kubernetes documentation).
"""

import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podscaler.base.clock import Clock, rfc3339, rfc3339_micro
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.launching import process_limits
from podscaler.controlplane.kubelet.launching.process_limits import ProcessLimits
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.registry.registry import Object, Registry

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_DURATION_S: Final = 40
"""As that of a kubelet; the Lease is renewed every `KubeletSettings.heartbeat_s` seconds."""
STATUS_PERIOD_S: Final = 300
"""The status is written at least so often, as by a kubelet (nodeStatusReportFrequency)."""
PID_PRESSURE: Final = "PIDPressure"
PROCESS_LIMITS: Final = "ProcessLimitsEnforced"
"""A condition of ours: whether the processes of all pods are limited (`process_limits`)."""
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
RETRY_S: Final = 1.0
"""The delay before a failed write is tried again; that of the registration doubles up to RETRY_MAX_S."""
RETRY_MAX_S: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """The facts about the machine that the Node shows; they are detected once, at the start.

    Attributes:
        cidr: the addresses of pods.
        capacity, node_info: status.capacity and status.nodeInfo.
        limitations: condition type (of ours) -> why the machine does not provide it, empty if it does.
        process_limits: how many processes the machine can have.
        endpoint_port: the port of the node's endpoints; 0: there are none.
    """

    name: str
    address: str
    cidr: str
    capacity: Mapping[str, str]
    node_info: Mapping[str, Any]
    limitations: Mapping[str, str]
    process_limits: ProcessLimits = field(default_factory=ProcessLimits)
    endpoint_port: int = 0


class NodeObject:
    """Writes the Node and its Lease.

    Args:
        count_processes: returns how many processes and threads the machine has now.
    """

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        settings: KubeletSettings,
        machine: MachineInfo,
        *,
        count_processes: Callable[[], int] = process_limits.count_processes,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._settings = settings
        self._machine = machine
        self._count_processes = count_processes
        self._was_short_of_pids = False  # as of the last write of the status
        self._is_registered = False

    async def register(self) -> None:
        """Create the Node unless it exists, and set its labels, taints and status. Raises StatusError.

        Labels and taints that are right are not written, as a webhook that is itself a pod here may review the write.
        """
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._machine.name, "labels": self._node_labels()},
            "spec": {"podCIDR": self._machine.cidr, "podCIDRs": [self._machine.cidr]},
        }
        stored = self._registry.find("nodes", "", self._machine.name)
        if stored is None:
            stored = await self._registry.create("nodes", node)
        refreshed = copy.deepcopy(stored)
        self._refresh_labels_and_taints(refreshed)
        if refreshed != stored:
            await self._registry.mutate("nodes", "", self._machine.name, self._refresh_labels_and_taints)
        await self._write_status()
        self._is_registered = True

    async def run(self) -> None:
        """Register the node, unless `register` has done that, and keep its Lease and status up to date.

        A write that fails is logged. The registration is tried again after RETRY_S to RETRY_MAX_S, a heartbeat after
        RETRY_S.
        """
        delay_s = RETRY_S
        while True:
            try:
                if not self._is_registered:
                    await self.register()
                delay_s = RETRY_S
                await self.heartbeat()
            except StatusError as error:
                _log.warning("the Node cannot be written: %s", error.message)
            await self._clock.sleep(delay_s)
            delay_s = min(delay_s * 2, RETRY_MAX_S)  # has an effect only until the node is registered

    async def heartbeat(self) -> None:
        """Renew the Lease every `heartbeat_s` seconds until cancelled. Raises StatusError.

        The status is written every STATUS_PERIOD_S seconds, and when PIDPressure changes.
        """
        status_due_s = self._clock.monotonic_s() + STATUS_PERIOD_S
        while True:
            await self._renew_lease()
            is_due = self._clock.monotonic_s() >= status_due_s
            if is_due or self._is_short_of_pids() != self._was_short_of_pids:
                await self._write_status()
            if is_due:
                status_due_s += STATUS_PERIOD_S
            await self._clock.sleep(self._settings.heartbeat_s)

    def _node_labels(self) -> dict[str, str]:
        """The labels of the node: those that every kubelet sets, then those of the settings."""
        name, node_info = self._machine.name, self._machine.node_info
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": node_info["operatingSystem"],
            "kubernetes.io/arch": node_info["architecture"],
            "beta.kubernetes.io/os": node_info["operatingSystem"],
            "beta.kubernetes.io/arch": node_info["architecture"],
            **self._settings.labels,
        }

    def _refresh_labels_and_taints(self, node: Object) -> None:
        """Set the labels, and remove the taint of nodes that are not ready, in place."""
        node["metadata"].setdefault("labels", {}).update(self._node_labels())
        spec = node.setdefault("spec", {})
        spec["taints"] = [taint for taint in spec.get("taints") or [] if taint.get("key") != NOT_READY_TAINT]
        if not spec["taints"]:
            del spec["taints"]

    async def _write_status(self) -> None:
        """Write the status; a condition whose status stays keeps its transition time. Raises StatusError."""
        self._was_short_of_pids = self._is_short_of_pids()

        def set_status(node: Object) -> None:
            """Set the fields that this node knows; a new field is an entry here."""
            now = rfc3339(self._clock.now_ns())
            status = node.setdefault("status", {})
            former_conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
            conditions = [
                _with_times(condition, former_conditions.get(condition["type"]), now)
                for condition in self._conditions()
            ]
            status |= {
                "capacity": dict(self._machine.capacity),
                "allocatable": dict(self._machine.capacity),
                "addresses": [
                    {"type": "InternalIP", "address": self._machine.address},
                    {"type": "Hostname", "address": self._machine.name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._machine.endpoint_port}},
                "nodeInfo": dict(self._machine.node_info),
                "conditions": conditions,
            }

        await self._registry.mutate("nodes", "", self._machine.name, set_status, subresource="status")

    def _conditions(self) -> list[Object]:
        """The conditions of the node, without times. A new one: an entry here, or of `MachineInfo.limitations`."""
        pressures = (
            ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        )
        return [
            *(_condition(type_, "False", reason, message) for type_, reason, message in pressures),
            self._pid_pressure(),
            *(_limitation_condition(type_, limitation) for type_, limitation in self._machine.limitations.items()),
            _condition("Ready", "True", "KubeletReady", "podscaler runs pods as processes of this machine"),
        ]

    def _pid_pressure(self) -> Object:
        """PIDPressure with kubelet's messages; the message also says where the processes of pods are not limited."""
        if self._is_short_of_pids():
            return _condition(
                PID_PRESSURE, "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"
            )
        message = "kubelet has sufficient PID available"
        if limitation := self._machine.limitations.get(PROCESS_LIMITS):
            message += f"; {limitation}"
        return _condition(PID_PRESSURE, "False", "KubeletHasSufficientPID", message)

    def _is_short_of_pids(self) -> bool:
        return self._machine.process_limits.is_short(self._count_processes())

    async def _renew_lease(self) -> None:
        """Renew the Lease of the node; it is created if it was deleted. Raises StatusError."""
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


def _limitation_condition(type_: str, limitation: str) -> Object:
    """A condition of ours: whether the machine provides something; `limitation` says why not, empty if it does."""
    if limitation:
        return _condition(type_, "False", "NotPossible", limitation)
    return _condition(type_, "True", "Possible", "this machine allows it")


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _with_times(condition: Object, former: Mapping[str, Any] | None, now: str) -> Object:
    """`condition` with its times.

    Args:
        former: the stored condition of this type, whose transition time is kept while the status stays; None: none.
        now: RFC 3339.
    """
    transition_time = now
    if former is not None and former["status"] == condition["status"]:
        transition_time = former["lastTransitionTime"]
    return condition | {"lastHeartbeatTime": now, "lastTransitionTime": transition_time}
