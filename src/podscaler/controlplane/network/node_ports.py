"""Allocates node ports to Services; `cluster_ips` creates a `NodePortAllocation` for each write of a Service.

Source: upstream's port allocator of Services. Differs: the lowest free port is allocated, not a random one.
"""

from collections.abc import Iterator

from podscaler.api.kinds.networking import service, service_update
from podscaler.api.machinery import field
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.controllers.framework.selection import Key

NUMBERS = range(30_000, 32_768)


class NodePorts:
    """The node ports of all Services, with their owners."""

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

    def without_foreign(self, key: Key, spec: Object) -> Object:
        """A stored spec without the node ports that another Service has, which an earlier version may have stored."""
        ports = [dict(port) for port in spec.get("ports") or []]
        for port in ports:
            if self._owners.get(port.get("nodePort", 0), key) != key:
                del port["nodePort"]
        return {**spec, "ports": ports} if ports else spec

    def owner(self, number: int) -> Key | None:
        """The Service with a node port, None for a free one."""
        return self._owners.get(number)


class NodePortAllocation:
    """The node ports of one write of a Service; they are not reserved before the write is decided.

    Args:
        held: the reserved node ports.
        key: namespace and name of the Service.
        old: its stored spec, empty for a new Service.
        is_dry: whether it is a dry run, for which `health_check` accepts numbers out of the range.
    """

    def __init__(self, held: NodePorts, key: Key, old: Object, *, is_dry: bool = False) -> None:
        self._held = held
        self._key = key
        self._old = frozenset(_numbers(old))
        self._is_new = not old
        self._is_dry = is_dry
        self._taken: dict[int, int] = {}

    def ports(self, spec: Object) -> list[Object]:
        """The ports of a Service of type NodePort or LoadBalancer, each with its node port.

        Ports with the same number (53 of TCP and of UDP) share a node port in a new Service. Raises StatusError 422 for
        a node port of another Service, PodscalerError if none is free.
        """
        listed = [dict(port) for port in spec.get("ports") or []]
        for index, port in enumerate(listed):
            if not port.get("nodePort"):
                self._set_free(port, listed, spec)
            if port.get("nodePort"):
                self._take(port, f"spec.ports[{index}].nodePort")
        return listed

    def health_check(self, spec: Object) -> int:
        """The healthCheckNodePort: the one in the spec, or a free one.

        Raises StatusError 500 for a port of another Service or out of the range, PodscalerError if none is free.
        """
        number: int = spec.get("healthCheckNodePort", 0)
        why = "" if not number or self._is_free(number) else "provided port is already allocated"
        if number and number not in NUMBERS and not self._is_dry:
            last = NUMBERS[-1]
            why = f"provided port is not in the valid range. The range of valid ports is {NUMBERS[0]}-{last}"
        if why:
            raise api_errors.internal_error(f"failed to allocate requested HealthCheck NodePort {number}: {why}")
        return number or self._next("HealthCheck NodePort")

    def _set_free(self, port: Object, listed: list[Object], spec: Object) -> None:
        same = [each["nodePort"] for each in listed if each.get("port") == port.get("port") and each.get("nodePort")]
        if self._is_new and same:
            port["nodePort"] = same[0]
        elif service_update.needs_node_ports(spec):
            port["nodePort"] = self._next("nodePort")

    def _take(self, port: Object, path: str) -> None:
        number: int = port["nodePort"]
        number_inside = port.get("port", 0)
        is_shared = number in self._taken and (not self._is_new or self._taken[number] == number_inside)
        if not is_shared and (number in self._taken or not self._is_free(number)):
            error = field.invalid(path, number, "provided port is already allocated")
            raise api_errors.invalid(service.RESOURCE, self._key[1], [error])
        self._taken[number] = number_inside

    def _next(self, what: str) -> int:
        for number in NUMBERS:
            if number not in self._taken and self._held.owner(number) is None:
                return number
        raise PodscalerError(f"failed to allocate a {what}: range is full")

    def _is_free(self, number: int) -> bool:
        return number in self._old or self._held.owner(number) in (None, self._key)


def _numbers(spec: Object) -> Iterator[int]:
    ports = spec.get("ports") or [] if service_update.is_reached_through_nodes(spec) else []
    found = [*(port.get("nodePort", 0) for port in ports), spec.get("healthCheckNodePort", 0)]
    yield from (number for number in found if number)
