"""The address controller: every Service that should have a clusterIP has one of this `up`'s block, and its node ports.

`manager.Controllers` runs it in a `loop.ControlLoop`. An address that the block does not hold (an earlier run had
another block, a user wrote one down) is replaced, keeping its place within the block where that is free.

New Services get theirs while they are created (`give`); the loop sees to those that change, and to those of an earlier
run.

Source: documentation of Service. Differs: types NodePort and LoadBalancer get node ports on which nothing listens.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from podscaler.api.resources import Object
from podscaler.clock import Clock
from podscaler.controlplane.events import EventRecorder
from podscaler.controlplane.registry import Change, Registry
from podscaler.controlplane.workloads import selection
from podscaler.controlplane.workloads.loop import Watched
from podscaler.controlplane.workloads.selection import Key
from podscaler.errors import PodscalerError, StatusError

SERVICES = "services"
NODE_PORTS = range(30_000, 32_768)
_OUTSIDE = frozenset({"NodePort", "LoadBalancer"})


class ServiceAddresses(Protocol):
    """Where addresses come from: `runtime.addresses.AddressBlock`."""

    def allocate_service(self, *, preferred: str | None = None) -> str:
        """A free address, `preferred` or its place in the block if possible. Raises PodscalerError without one."""
        ...

    def reserve_service(self, address: str) -> bool:
        """Take exactly this address; False where that is not possible."""
        ...

    def release(self, address: str) -> None:
        """The address is free again."""
        ...


class ClusterIPs:
    """See the module. Keys are namespace and name of Services."""

    name = "service-address-controller"

    def __init__(self, registry: Registry, clock: Clock, addresses: ServiceAddresses) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._addresses = addresses
        self._held: dict[Key, str] = {}
        self._node_ports: dict[int, Key] = {}

    def watches(self) -> Sequence[Watched[Key]]:
        """Services."""
        return [Watched(SERVICES, self._of_service)]

    def prime(self) -> Iterable[Key]:
        """Take what Services have already, before anything is given out."""
        services = self._registry.list(SERVICES)
        for service in services:
            self._hold(service)
        return {*map(selection.key_of, services), *self._held}

    def give(self, service: Object) -> None:
        """Put address and node ports into a Service that is being created. Raises PodscalerError without a free one."""
        self._hold(service)
        self._give(selection.key_of(service), service["spec"])

    async def sync(self, key: Key) -> float | None:
        """Write the address and node ports that are missing or not ours."""
        service = self._registry.find(SERVICES, *key)
        if service is None:
            self._let_go(key)
            return None
        self._hold(service)
        before = _given_out(service)
        self._give(key, service["spec"])
        if _given_out(service) != before:
            await self._write(service)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Why a Service has no address."""
        service = self._registry.find(SERVICES, *key)
        if service is not None and isinstance(error, PodscalerError) and not isinstance(error, StatusError):
            self._events.event(service, "Warning", "AddressesExhausted", str(error))

    def _of_service(self, change: Change) -> Iterable[Key]:
        return [selection.key_of(change.object)]

    def _hold(self, service: Object) -> None:
        """Note what the Service has, as far as nobody else has it."""
        key, spec = selection.key_of(service), service["spec"]
        address = spec.get("clusterIP", "")
        held = self._held.get(key)
        if _wants_address(spec) and address and address != held and self._addresses.reserve_service(address):
            if held is not None:
                self._addresses.release(held)
            self._held[key] = address
        for port in spec.get("ports") or []:
            if port.get("nodePort"):
                self._node_ports.setdefault(port["nodePort"], key)

    def _let_go(self, key: Key) -> None:
        address = self._held.pop(key, None)
        if address is not None:
            self._addresses.release(address)
        for number in [number for number, owner in self._node_ports.items() if owner == key]:
            del self._node_ports[number]

    def _give(self, key: Key, spec: Object) -> None:
        """Put into `spec` what it lacks."""
        if not _wants_address(spec):
            self._let_go(key)
            return
        if key not in self._held:
            self._held[key] = self._addresses.allocate_service(preferred=spec.get("clusterIP"))
        spec["clusterIP"] = self._held[key]
        spec["clusterIPs"] = [self._held[key]]
        for port in (spec.get("ports") or []) if spec.get("type") in _OUTSIDE else []:
            if self._node_ports.get(port.get("nodePort", 0)) != key:
                port["nodePort"] = self._free_node_port(key)

    def _free_node_port(self, key: Key) -> int:
        for number in NODE_PORTS:
            if number not in self._node_ports:
                self._node_ports[number] = key
                return number
        raise PodscalerError(f"all {len(NODE_PORTS)} node ports are in use")

    async def _write(self, service: Object) -> None:
        try:
            await self._registry.update(SERVICES, service, subresource="address")
        except StatusError as error:
            if error.code != 404:
                raise


def _wants_address(spec: Object) -> bool:
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def _given_out(service: Object) -> tuple[str, list[int]]:
    spec = service["spec"]
    return spec.get("clusterIP", ""), [port.get("nodePort", 0) for port in spec.get("ports") or []]
