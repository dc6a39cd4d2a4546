"""Allocates node ports (port numbers for Services of type NodePort and LoadBalancer) in the range 30000 to 32767.

`cluster_ips` creates a `NodePortAllocation` for each write of a Service: a port without nodePort gets the lowest free
number, `{"port": 80}` becomes `{"port": 80, "nodePort": 30000}`. `NodePorts` holds the node ports of stored Services.
The range of a nodePort in a spec is checked by validation (`api.kinds.networking.service_validation`).

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
    """The reserved node ports, each with the Service (namespace and name) that owns it."""

    def __init__(self) -> None:
        self._owners: dict[int, Key] = {}

    def reserve(self, key: Key, spec: Object) -> None:
        """Reserve the node ports of a stored Service, except those that another Service has."""
        for node_port in _node_ports_in(spec):
            self._owners.setdefault(node_port, key)

    def release(self, key: Key) -> None:
        """Release all node ports of a Service."""
        for node_port in [node_port for node_port, owner in self._owners.items() if owner == key]:
            del self._owners[node_port]

    def without_ports_of_others(self, key: Key, spec: Object) -> Object:
        """A stored spec without the node ports of other Services, which earlier releases of podscaler could store."""
        service_ports = [dict(service_port) for service_port in spec.get("ports") or []]
        for service_port in service_ports:
            if self._owners.get(service_port.get("nodePort", 0), key) != key:  # nothing owns 0
                del service_port["nodePort"]
        return {**spec, "ports": service_ports} if service_ports else spec

    def find_owner(self, node_port: int) -> Key | None:
        """The Service with a node port, None for a free one."""
        return self._owners.get(node_port)


class NodePortAllocation:
    """The node ports of one write of a Service: call `allocate_ports`, then `allocate_health_check`.

    Nothing is reserved in `reserved`: the caller does it once the write is stored. A node port is available if no other
    Service has it, and this write has not given it to another port.

    Args:
        reserved: the node ports of all stored Services.
        key: namespace and name of the written Service.
        old: the stored spec, empty for a new Service.
        is_dry: whether the write is a dry run, for which `allocate_health_check` accepts node ports out of the range.
    """

    def __init__(self, reserved: NodePorts, key: Key, old: Object, *, is_dry: bool = False) -> None:
        self._reserved = reserved
        self._key = key
        self._old_node_ports = frozenset(_node_ports_in(old))
        self._is_new = not old
        self._is_dry = is_dry
        self._port_by_node_port: dict[int, int] = {}
        """The node ports of this write, each with the field `port` of the Service port that has it."""
        self._requested: frozenset[int] = frozenset()
        """The node ports that the spec of this write names; none of them is given to a port that names none."""

    def allocate_ports(self, spec: Object) -> list[Object]:
        """The ports of a Service of type NodePort or LoadBalancer, each with its node port.

        Ports with the same field `port` (53 of TCP and of UDP) share a node port in a new Service. Raises StatusError
        422 for a node port that is not available, PodscalerError if none is free.
        """
        service_ports = [dict(service_port) for service_port in spec.get("ports") or []]
        self._requested = frozenset(_node_ports_in(spec))
        for index, service_port in enumerate(service_ports):
            if not service_port.get("nodePort"):
                self._set_node_port(service_port, service_ports, spec)
            if service_port.get("nodePort"):
                self._record(service_port, f"spec.ports[{index}].nodePort")
        return service_ports

    def allocate_health_check(self, spec: Object) -> int:
        """The healthCheckNodePort: the one in the spec, or a free one.

        Raises StatusError 500 for a port of another Service or out of the range, PodscalerError if none is free.
        """
        node_port: int = spec.get("healthCheckNodePort", 0)
        is_taken = node_port in self._port_by_node_port or not self._is_free(node_port)
        problem = "provided port is already allocated" if node_port and is_taken else ""
        if node_port and node_port not in NODE_PORT_RANGE and not self._is_dry:
            first, last = NODE_PORT_RANGE[0], NODE_PORT_RANGE[-1]
            problem = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
        if problem:
            raise api_errors.internal_error(f"failed to allocate requested HealthCheck NodePort {node_port}: {problem}")
        return node_port or self._lowest_free("HealthCheck NodePort")

    def _set_node_port(self, service_port: Object, service_ports: list[Object], spec: Object) -> None:
        """Set `nodePort` of a port, if the Service needs one: that of a port with the same `port`, or a free one."""
        port_number = service_port.get("port")
        shared = [
            other["nodePort"] for other in service_ports if other.get("port") == port_number and other.get("nodePort")
        ]
        if self._is_new and shared:
            service_port["nodePort"] = shared[0]
        elif service_update.needs_node_ports(spec):
            service_port["nodePort"] = self._lowest_free("nodePort")

    def _record(self, service_port: Object, path: str) -> None:
        """Add the `nodePort` of a port to this allocation; `path` is its field.

        Raises StatusError 422 if it is not available.
        """
        node_port: int = service_port["nodePort"]
        port_number: int = service_port.get("port", 0)
        if node_port in self._port_by_node_port:
            # as upstream: in a new Service only ports with the same `port` share a node port, in an update any ports do
            is_available = not self._is_new or self._port_by_node_port[node_port] == port_number
        else:
            is_available = self._is_free(node_port)
        if not is_available:
            _, name = self._key
            error = field.invalid(path, node_port, "provided port is already allocated")
            raise api_errors.invalid(service.RESOURCE, name, [error])
        self._port_by_node_port[node_port] = port_number

    def _lowest_free(self, field_name: str) -> int:
        """The lowest node port that no Service has, and this write neither has nor requests. Raises PodscalerError."""
        for node_port in NODE_PORT_RANGE:
            is_of_this_write = node_port in self._port_by_node_port or node_port in self._requested
            if not is_of_this_write and self._reserved.find_owner(node_port) is None:
                return node_port
        raise PodscalerError(f"failed to allocate a {field_name}: range is full")

    def _is_free(self, node_port: int) -> bool:
        """Whether no other Service has the node port."""
        return node_port in self._old_node_ports or self._reserved.find_owner(node_port) in (None, self._key)


def _node_ports_in(spec: Object) -> Iterator[int]:
    """The node ports in a spec: those of its ports, and its healthCheckNodePort."""
    ports = (spec.get("ports") or []) if service_update.is_reached_through_nodes(spec) else []
    node_ports = [*(port.get("nodePort", 0) for port in ports), spec.get("healthCheckNodePort", 0)]
    yield from filter(None, node_ports)
