"""Allocates clusterIPs and node ports to Services, and repairs those of an earlier run.

A Service gets both while it is written: the registry calls `allocate` before validation, then either commits the
`Allocation` or releases it (refused write, dry run), and undoes it if the disk fails later.
`controller_manager.Controllers` also runs this controller in a `control_loop.ControlLoop`, for Services of an earlier
run with another address block: a stored 127.5.224.1 becomes 127.9.224.1 in block 127.9.0.0/16 if that is free, else
another address of the block. A new allocated field: `_allocated_fields`, and where it is reserved and released
(`_reserve_stored`, `_release_all`, `_record_allocation`).

Source: documentation of Service; kube-apiserver's allocators (pkg/registry/core/service/storage/alloc.go).
Differs: an address that a user requested and that is not available is replaced, not refused.
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
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.network.node_ports import NodePortAllocation, NodePorts
from podscaler.controlplane.registry.allocation import Allocation
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.change_log import StoreEvent

SERVICES = "services"
_PARENT_NAME_PATH = "spec.parentRef.name"
"""The field of an IPAddress object (networking.k8s.io) that names the Service; error messages quote it."""


class ServiceAddresses(Protocol):
    """The pool of addresses: `network.addresses.AddressBlock`, or a fake."""

    def allocate_service(self, *, preferred: str | None = None) -> str:
        """A free address: `preferred`, or its offset in the block, if possible. Raises PodscalerError without one."""
        ...

    def reserve_service(self, address: str) -> bool:
        """Reserve exactly this address; returns False if that is not possible."""
        ...

    def release(self, address: str) -> None:
        """Free the address; an empty text is ignored."""
        ...


class ClusterIPs(Reconciler[Key]):
    """The allocator and controller of clusterIPs and node ports; keys are namespace and name of a Service.

    Args:
        registry: the stored Services.
        clock: the time of events.
        addresses: the pool from which clusterIPs are allocated.
    """

    name = "service-address-controller"

    def __init__(self, registry: Registry, clock: Clock, addresses: ServiceAddresses) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._addresses = addresses
        self._reserved: dict[Key, str] = {}  # the clusterIP of each Service that has one
        self._node_ports = NodePorts()

    def watches(self) -> Sequence[Watched[Key]]:
        """Services."""
        return [Watched(SERVICES, selection.own_keys)]

    def prime(self) -> Iterable[Key]:
        """Reserve the stored addresses, before any is allocated; returns all Services, and those that are gone."""
        services = self._registry.list(SERVICES)
        for service in services:
            self._reserve_stored(service)
        return {*map(selection.key_of, services), *self._reserved}

    def allocate(self, new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
        """Allocate the address and node ports that a Service lacks, as an `allocation.Allocator`.

        Raises StatusError 422 and 500.

        Args:
            new: the Service of a create or update.
            old: the stored Service, None for a create.
            is_dry: whether the write is a dry run.
        """
        name, spec = new["metadata"].get("name", ""), new["spec"]
        errors = service_validation.validate_allocation(new, old, is_dry=is_dry)
        if errors:
            raise api_errors.invalid(service_kind.RESOURCE, name, errors)
        key = new["metadata"].get("namespace", ""), name
        stored_spec = old["spec"] if old else {}
        address = self._allocate_address(name, spec, is_dry=is_dry) if _lacks_address(spec, stored_spec) else ""
        try:
            node_ports = NodePortAllocation(self._node_ports, key, stored_spec, is_dry=is_dry)
            allocated_fields = _allocated_fields(node_ports, spec, address)
        except StatusError:
            self._addresses.release(address)
            raise
        except PodscalerError as error:  # no node port is free
            self._addresses.release(address)
            raise api_errors.internal_error(str(error)) from error
        commit = partial(self._record_allocation, key, {**spec, **allocated_fields}, address)
        release = partial(self._addresses.release, address)
        return Allocation(allocated_fields, commit=commit, release=release, undo=partial(self._restore_stored, key))

    def on_commit(self, events: Iterable[StoreEvent]) -> None:
        """Release addresses and node ports of deleted Services; `Objects` calls it with the events of every commit."""
        for event in events:
            previous = event.previous
            is_delete = event.entry is None
            if is_delete and previous is not None and previous.resource == SERVICES:
                self._release_deleted(previous.decode())

    async def sync(self, key: Key) -> float | None:
        """Write an address and node ports where the stored ones are missing, or of another block or Service.

        Returns None: there is no time of a next sync. Raises PodscalerError: StatusError, or none is free.
        """
        service = self._registry.find(SERVICES, *key)
        if service is None:
            self._release_all(key)
            return None
        self._reserve_stored(service)
        stored_spec = self._node_ports.without_ports_of_others(key, service["spec"])
        address = ""  # the stored one is right, or the Service needs none
        stored_address = stored_spec.get("clusterIP", "")
        is_reserved = self._reserved.get(key) == stored_address  # else it is missing, or of another block or Service
        if _needs_address(stored_spec) and not is_reserved:
            address = self._reserved.get(key) or self._addresses.allocate_service(preferred=stored_address or None)
        node_ports = NodePortAllocation(self._node_ports, key, stored_spec)
        new_spec = {**stored_spec, **_allocated_fields(node_ports, stored_spec, address)}
        self._record_allocation(key, new_spec, address)
        if new_spec != service["spec"]:
            # a subresource of ours: the only update that may change a clusterIP or node port
            update = self._registry.update(SERVICES, {**service, "spec": new_spec}, subresource="address")
            await write_errors.ignoring_gone(update)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record an event for a Service that gets no address or node port."""
        service = self._registry.find(SERVICES, *key)
        if service is not None and isinstance(error, PodscalerError) and not isinstance(error, StatusError):
            self._events.event(service, "Warning", "AddressesExhausted", str(error))

    def _reserve_stored(self, service: Object) -> None:
        """Reserve the stored address and node ports of a Service, unless another Service has them."""
        key, spec = selection.key_of(service), service["spec"]
        address = spec.get("clusterIP", "")
        reserved_address = self._reserved.get(key)
        is_other_address = _needs_address(spec) and address and address != reserved_address
        if is_other_address and self._addresses.reserve_service(address):
            if reserved_address is not None:
                self._addresses.release(reserved_address)
            self._reserved[key] = address
        self._node_ports.reserve(key, spec)

    def _release_all(self, key: Key) -> None:
        """Release all that is reserved for a Service."""
        address = self._reserved.pop(key, "")
        self._addresses.release(address)
        self._node_ports.release(key)

    def _restore_stored(self, key: Key) -> None:
        """Undo the allocation of a write that was not committed.

        The address and node ports of the stored Service stay reserved.
        """
        self._release_all(key)
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            self._reserve_stored(service)

    def _release_deleted(self, service: Object) -> None:
        """Release the address and node ports of a deleted Service, unless they are those of a new one of its name."""
        key, spec = selection.key_of(service), service["spec"]
        deleted_address = spec.get("clusterIP", "") if _needs_address(spec) else ""
        if self._reserved.get(key, "") == deleted_address:
            self._release_all(key)

    def _allocate_address(self, name: str, spec: Object, *, is_dry: bool) -> str:
        """Allocate an address. Raises StatusError 422 if there is none, or the Service has no valid name."""
        requested_address = spec.get("clusterIP", "")
        try:
            address = self._addresses.allocate_service(preferred=requested_address or None)
        except PodscalerError as error:
            raise _allocation_error(name, requested_address, str(error)) from error
        # upstream creates an IPAddress object, whose validation rejects the name of the Service
        if name:
            messages = names.path_segment_errors(name)
            name_errors = [field.invalid(_PARENT_NAME_PATH, name, message) for message in messages]
        else:
            name_errors = [field.required(_PARENT_NAME_PATH)]
        if name_errors and not is_dry:
            self._addresses.release(address)
            invalid = field.invalid_object(
                group="networking.k8s.io", kind="IPAddress", name=address, errors=name_errors
            )
            raise _allocation_error(name, requested_address, invalid.message)
        return address

    def _record_allocation(self, key: Key, spec: Object, address: str) -> None:
        """Record the address (empty: unchanged) and node ports of a decided write, and release the earlier ones.

        Args:
            spec: the written spec.
        """
        former_address = self._reserved.get(key, "")
        if address:
            self._reserved[key] = address
        elif not _needs_address(spec):
            self._reserved.pop(key, None)
        if former_address and former_address != self._reserved.get(key):
            self._addresses.release(former_address)
        self._node_ports.release(key)
        self._node_ports.reserve(key, spec)


def _allocated_fields(node_ports: NodePortAllocation, spec: Object, address: str) -> Object:
    """The fields of a spec that the allocation changes, with their new values; an empty `address` changes none.

    Raises StatusError 422 and 500 for a node port that is not available, PodscalerError if no node port is free.
    """
    fields: Object = {"clusterIP": address, "clusterIPs": [address]} if address else {}
    if not service_update.is_reached_through_nodes(spec):
        return fields
    fields["ports"] = node_ports.allocate_ports(spec)
    if service_update.has_health_check(spec):
        fields["healthCheckNodePort"] = node_ports.allocate_health_check(spec)
    return {field_name: value for field_name, value in fields.items() if spec.get(field_name) != value}


def _needs_address(spec: Object) -> bool:
    """Whether a Service with this spec has a clusterIP: not for ExternalName and headless Services."""
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def _lacks_address(spec: Object, stored_spec: Object) -> bool:
    """Whether an address must be allocated; a stored one is kept, and validation rejects changing it.

    Args:
        stored_spec: the spec before the write, empty for a create.
    """
    return _needs_address(spec) and not stored_spec.get("clusterIP")


def _allocation_error(name: str, requested_address: str, reason: str) -> StatusError:
    """The StatusError 422 of a Service that gets no address; `requested_address` is empty where any would do."""
    message = f"failed to allocate IP{f' {requested_address}' if requested_address else ''}: {reason}"
    error = field.invalid("spec.clusterIPs", [requested_address], message)
    return api_errors.invalid(service_kind.RESOURCE, name, [error])
