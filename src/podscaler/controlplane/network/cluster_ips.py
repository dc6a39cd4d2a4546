"""The address controller: every Service that should have a clusterIP has one of this `up`'s block, and its node ports.

Services get both while they are written (`give`), before they are validated; a write that is refused or not committed
and a dry run give them back. `controller_manager.Controllers` runs the controller in a `control_loop.ControlLoop` for
Services of an earlier run: an address that the block does not hold (that run had another block) is replaced, keeping
its place within the block where that is free.

Source: documentation of Service; upstream's allocators in the storage of Services. Differs: an address that a user
wrote down and that cannot be had is replaced, not refused; types NodePort and LoadBalancer get node ports on which
nothing listens.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from podscaler.api.kinds.networking import service as service_kind
from podscaler.api.kinds.networking import service_update, service_validation
from podscaler.api.machinery import field, names
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.network.node_ports import NodePorts, Taking
from podscaler.controlplane.registry.allocation import Allocation
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.controlplane.storage.change_log import StoreEvent

SERVICES = "services"
_PARENT = "spec.parentRef.name"
"""Where upstream's record of an address (IPAddress) says whose it is: a Service without a name cannot have one."""


class ServiceAddresses(Protocol):
    """Where addresses come from: `network.addresses.AddressBlock`."""

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
        self._node_ports = NodePorts()

    def watches(self) -> Sequence[Watched[Key]]:
        """Services."""
        return [Watched(SERVICES, self._of_service)]

    def prime(self) -> Iterable[Key]:
        """Take what Services have already, before anything is given out."""
        services = self._registry.list(SERVICES)
        for service in services:
            self._hold(service)
        return {*map(selection.key_of, services), *self._held}

    def give(self, new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
        """The address and the node ports that a Service lacks: a `allocation.Give`."""
        name, spec = new["metadata"].get("name", ""), new["spec"]
        faults = service_validation.validate_allocation(new, old, is_dry=is_dry)
        if faults:
            raise api_errors.invalid(service_kind.RESOURCE, name, faults)
        key, stored = (new["metadata"].get("namespace", ""), name), old["spec"] if old else {}
        address = self._take(name, spec, is_dry=is_dry) if _lacks_address(spec, stored) else ""
        try:
            taking = Taking(self._node_ports, key, stored, is_dry=is_dry)
            given = _given(taking, spec, address)
        except PodscalerError as error:
            self._addresses.release(address)
            raise error if isinstance(error, StatusError) else api_errors.internal_error(str(error)) from error
        keep = partial(self._keep, key, {**spec, **given}, address)
        take_back = partial(self._addresses.release, address)
        return Allocation(given, keep=keep, take_back=take_back, undo=partial(self._restore, key))

    def notice(self, events: Iterable[StoreEvent]) -> None:
        """What a deleted Service had is free at once: to be called with the events of every commit."""
        for event in events:
            gone = event.previous
            if event.entry is None and gone is not None and gone.resource == SERVICES:
                self._notice_end(gone.decode())

    async def sync(self, key: Key) -> float | None:
        """Write the address and node ports that are missing or not ours."""
        service = self._registry.find(SERVICES, *key)
        if service is None:
            self._let_go(key)
            return None
        self._hold(service)
        spec, address = self._node_ports.without_foreign(key, service["spec"]), ""
        if _wants_address(spec) and self._held.get(key) != spec.get("clusterIP", ""):
            address = self._held.get(key) or self._addresses.allocate_service(preferred=spec.get("clusterIP"))
        spec = {**spec, **_given(Taking(self._node_ports, key, spec), spec, address)}
        self._keep(key, spec, address)
        if spec != service["spec"]:
            await self._write({**service, "spec": spec})
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Why a Service has no address."""
        service = self._registry.find(SERVICES, *key)
        if service is not None and isinstance(error, PodscalerError) and not isinstance(error, StatusError):
            self._events.event(service, "Warning", "AddressesExhausted", str(error))

    def _of_service(self, change: ObjectEvent) -> Iterable[Key]:
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
        self._node_ports.hold(key, spec)

    def _let_go(self, key: Key) -> None:
        address = self._held.pop(key, "")
        self._addresses.release(address)
        self._node_ports.let_go(key)

    def _restore(self, key: Key) -> None:
        """The Service has what is stored, and nothing of what a write that was not committed gave it."""
        self._let_go(key)
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            self._hold(service)

    def _notice_end(self, service: Object) -> None:
        """A new Service of the same name, if it is on its way already, has another address."""
        key, spec = selection.key_of(service), service["spec"]
        if self._held.get(key, "") == (spec.get("clusterIP", "") if _wants_address(spec) else ""):
            self._let_go(key)

    def _take(self, name: str, spec: Object, *, is_dry: bool) -> str:
        """An address for a Service that is being written. Raises StatusError 422 without one, and without a name."""
        wanted = spec.get("clusterIP", "")
        try:
            address = self._addresses.allocate_service(preferred=wanted or None)
        except PodscalerError as error:
            raise _no_address(name, wanted, str(error)) from error
        faults = [field.invalid(_PARENT, name, text) for text in names.path_segment_faults(name)]
        faults = faults if name else [field.required(_PARENT)]
        if faults and not is_dry:
            self._addresses.release(address)
            refused = field.refusal(group="networking.k8s.io", kind="IPAddress", name=address, errors=faults)
            raise _no_address(name, wanted, refused.message)
        return address

    def _keep(self, key: Key, spec: Object, address: str) -> None:
        """The Service has that spec from now on, and the address if there is one."""
        before = self._held.get(key, "")
        if address:
            self._held[key] = address
        elif not _wants_address(spec):
            self._held.pop(key, None)
        if before and before != self._held.get(key):
            self._addresses.release(before)
        self._node_ports.let_go(key)
        self._node_ports.hold(key, spec)

    async def _write(self, service: Object) -> None:
        try:
            await self._registry.update(SERVICES, service, subresource="address")
        except StatusError as error:
            if error.code != 404:
                raise


def _given(taking: Taking, spec: Object, address: str) -> Object:
    """The fields of a spec that get another value. Raises StatusError 422 and 500, PodscalerError."""
    given: Object = {"clusterIP": address, "clusterIPs": [address]} if address else {}
    if not service_update.is_reached_through_nodes(spec):
        return given
    given["ports"] = taking.ports(spec)
    if service_update.has_health_check(spec):
        given["healthCheckNodePort"] = taking.health_check(spec)
    return {name: value for name, value in given.items() if spec.get(name) != value}


def _wants_address(spec: Object) -> bool:
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def _lacks_address(spec: Object, stored: Object) -> bool:
    """One that has an address keeps it: another one in its place is a fault, which validation tells."""
    return _wants_address(spec) and not stored.get("clusterIP")


def _no_address(name: str, wanted: str, why: str) -> StatusError:
    text = f"failed to allocate IP{f' {wanted}' if wanted else ''}: {why}"
    return api_errors.invalid(service_kind.RESOURCE, name, [field.invalid("spec.clusterIPs", [wanted], text)])
