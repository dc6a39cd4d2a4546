"""Allocates node ports (port numbers for Services of type NodePort and LoadBalancer) in the range 30000 to 32767.

`cluster_ips` creates a `NodePortAllocation` for each write of a Service: a port without nodePort gets the lowest free
number, `{"port": 80}` becomes `{"port": 80, "nodePort": 30000}`. `NodePorts` has the committed ones.

Source: kube-apiserver's port allocator of Services (pkg/registry/core/service/storage/alloc.go,
--service-node-port-range). Differs: the lowest free port is allocated, not a random one.
"""

from collections.abc import Iterator

from podscaler.api.kinds.networking import service, service_update
from podscaler.api.machinery import field
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.controllers.framework.selection import Key

NODE_PORT_RANGE = range(30_000, 32_768)


class NodePorts:
    """The reserved node ports, each with the Service (namespace and name) that owns it. A spec is a ServiceSpec."""

    def __init__(self) -> None:
        self._owners: dict[int, Key] = {}

    def reserve(self, key: Key, spec: Object) -> None:
        """Reserve the node ports of a stored Service, except those that another Service has."""
        for number in _numbers(spec):
            self._owners.setdefault(number, key)

    def release(self, key: Key) -> None:
        """Release all node ports of a Service."""
        for number in [number for number, owner in self._owners.items() if owner == key]:
            del self._owners[number]

    def without_ports_of_others(self, key: Key, spec: Object) -> Object:
        """A stored spec without the node ports that another Service has, which an earlier version may have stored."""
        service_ports = [dict(port) for port in spec.get("ports") or []]
        for service_port in service_ports:
            if self._owners.get(service_port.get("nodePort", 0), key) != key:
                del service_port["nodePort"]
        return {**spec, "ports": service_ports} if service_ports else spec

    def owner(self, number: int) -> Key | None:
        """The Service with a node port, None for a free one."""
        return self._owners.get(number)


class NodePortAllocation:
    """The node ports of one write of a Service; they are not reserved before the write is decided.

    Args:
        reserved: the node ports of all Services.
        key: namespace and name of the written Service.
        old: the stored spec, empty for a new Service.
        is_dry: whether the write is a dry run, for which `health_check` accepts numbers out of the range.
    """

    def __init__(self, reserved: NodePorts, key: Key, old: Object, *, is_dry: bool = False) -> None:
        self._reserved = reserved
        self._key = key
        self._old_numbers = frozenset(_numbers(old))
        self._is_new = not old
        self._is_dry = is_dry
        self._service_ports: dict[int, int] = {}  # node port of this allocation -> port of the Service

    def ports(self, spec: Object) -> list[Object]:
        """The ports of a Service of type NodePort or LoadBalancer, each with its node port.

        Ports with the same number (53 of TCP and of UDP) share a node port in a new Service. Raises StatusError 422 for
        a node port of another Service, PodscalerError if none is free.
        """
        service_ports = [dict(port) for port in spec.get("ports") or []]
        for index, service_port in enumerate(service_ports):
            if not service_port.get("nodePort"):
                self._allocate(service_port, service_ports, spec)
            if service_port.get("nodePort"):
                self._add(service_port, f"spec.ports[{index}].nodePort")
        return service_ports

    def health_check(self, spec: Object) -> int:
        """The healthCheckNodePort: the one in the spec, or a free one.

        Raises StatusError 500 for a port of another Service or out of the range, PodscalerError if none is free.
        """
        number: int = spec.get("healthCheckNodePort", 0)
        problem = "" if not number or self._is_free(number) else "provided port is already allocated"
        if number and number not in NODE_PORT_RANGE and not self._is_dry:
            valid_range = f"{NODE_PORT_RANGE[0]}-{NODE_PORT_RANGE[-1]}"
            problem = f"provided port is not in the valid range. The range of valid ports is {valid_range}"
        if problem:
            raise api_errors.internal_error(f"failed to allocate requested HealthCheck NodePort {number}: {problem}")
        return number or self._lowest_free("HealthCheck NodePort")

    def _allocate(self, service_port: Object, all_ports: list[Object], spec: Object) -> None:
        """Set `nodePort` of a core/v1 ServicePort, if the Service needs one. Raises PodscalerError if none is free.

        Args:
            all_ports: all ports of the Service; those before `service_port` have their node ports.
        """
        port_number = service_port.get("port")
        node_ports_of_same_number = [
            other["nodePort"] for other in all_ports if other.get("port") == port_number and other.get("nodePort")
        ]
        if self._is_new and node_ports_of_same_number:
            service_port["nodePort"] = node_ports_of_same_number[0]
        elif service_update.needs_node_ports(spec):
            service_port["nodePort"] = self._lowest_free("nodePort")

    def _add(self, service_port: Object, path: str) -> None:
        """Add the `nodePort` of a ServicePort to this allocation. Raises StatusError 422 if it is not available.

        Args:
            path: the field of the node port, for the error: `spec.ports[0].nodePort`.
        """
        node_port: int = service_port["nodePort"]
        port_number = service_port.get("port", 0)
        is_added = node_port in self._service_ports
        is_shared = is_added and (not self._is_new or self._service_ports[node_port] == port_number)
        if not is_shared and (is_added or not self._is_free(node_port)):
            error = field.invalid(path, node_port, "provided port is already allocated")
            _, name = self._key
            raise api_errors.invalid(service.RESOURCE, name, [error])
        self._service_ports[node_port] = port_number

    def _lowest_free(self, field_name: str) -> int:
        """The lowest free node port. Raises PodscalerError, whose message has `field_name`, if none is free."""
        for number in NODE_PORT_RANGE:
            if number not in self._service_ports and self._reserved.owner(number) is None:
                return number
        raise PodscalerError(f"failed to allocate a {field_name}: range is full")

    def _is_free(self, number: int) -> bool:
        return number in self._old_numbers or self._reserved.owner(number) in (None, self._key)


def _numbers(spec: Object) -> Iterator[int]:
    """The node ports in a spec: those of its ports, and its healthCheckNodePort."""
    ports = spec.get("ports") or [] if service_update.is_reached_through_nodes(spec) else []
    numbers = [*(port.get("nodePort", 0) for port in ports), spec.get("healthCheckNodePort", 0)]
    yield from filter(None, numbers)
