"""The Service proxy: forwards the TCP and UDP ports of clusterIPs and of the node to the endpoints in EndpointSlices.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. `sync` compares the ports of a Service with
the open listeners, and replaces the backends of their balancers: for port 80 with targetPort 8080 and two ready pods it
listens on 127.5.224.1:80 and forwards to 127.5.1.1:8080 and 127.5.1.2:8080. A terminating pod gets no new connections
as soon as the watch reports it, before its slice is updated. With a nodePort of 30000 it listens on the address of the
node too, 127.5.0.1:30000.

Source: documentation of Service ("Virtual IPs and Service Proxies"). Differs from kube-proxy: a process copies the
bytes, there are no packet filter rules; no SCTP; a TCP connection without endpoints is accepted, then reset.
"""

import errno
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from podscaler.api import port_map
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.controllers.endpoints import slices
from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod, Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.network import datagram_listener, port_listener
from podscaler.controlplane.network.balancer import Address, Backends
from podscaler.controlplane.network.datagram_listener import DatagramListener
from podscaler.controlplane.network.port_listener import PortListener
from podscaler.controlplane.network.proxied_connection import ProxiedConnections
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

TCP, UDP = "TCP", "UDP"
PROXIED_PROTOCOLS: Final = (TCP, UDP)
"""Another one: an entry here, and its listener in `_open_listener`."""
SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
PODS = "pods"
DEFAULT_AFFINITY_S = 10_800
"""The API's default of `sessionAffinityConfig.clientIP.timeoutSeconds`: three hours."""
BATCH_S_PER_ENDPOINT: Final = 0.0001
"""The seconds for which changes are collected, for each endpoint, up to MAX_BATCH_S: a sync reads all of them."""
MAX_BATCH_S: Final = 0.5
BATCH_MIN_ENDPOINTS: Final = 100
"""Changes of a Service with fewer endpoints are not collected, so that they take effect at once."""


class CannotListen(PodscalerError):
    """A port of a Service cannot be listened on; the text says why."""


class ListenAddress(NamedTuple):
    """An address to listen on: a Service's or the node's, with the Service's port number; `protocol` is TCP or UDP."""

    host: str
    port: int
    protocol: str


Listener = PortListener | DatagramListener


class _ServicePort(NamedTuple):
    """Name (may be empty) and protocol, by which a port of a Service is found among the ports of its slices."""

    name: str
    protocol: str


@dataclass(frozen=True, slots=True)
class _CachedSlice:
    """The backends of one port in an EndpointSlice.

    Attributes:
        slice: the EndpointSlice.
        pods: the pods of its endpoints.
        backends: the backends while none of these pods is terminating.
    """

    slice: Object
    pods: frozenset[Key]
    backends: Backends


class ServiceProxy(Reconciler[Key]):
    """The controller that opens listeners for Services; keys are namespace and name of a Service.

    Args:
        registry: the Services, EndpointSlices and pods.
        clock: for session affinity and events.
        max_connections: the most connections open at a time (`port_listener.raise_connection_limit`).
        node_address: the IP address on which node ports are listened on, empty for none.
    """

    name = "service-proxy"

    def __init__(self, registry: Registry, clock: Clock, *, max_connections: int, node_address: str = "") -> None:
        self._registry = registry
        self._clock = clock
        self._node_address = node_address
        self._events = EventRecorder(registry, self.name, clock)
        self._connections = ProxiedConnections(max_connections)
        self._listeners: dict[Key, dict[ListenAddress, Listener]] = {}
        self._terminating_uids: dict[Key, str] = {}  # namespace and name of a pod -> its uid
        # the ports whose protocol is not served, as the last event names them
        self._reported_ports: dict[Key, str] = {}
        self._batch_period: BatchPeriod[Key] = BatchPeriod(
            BATCH_S_PER_ENDPOINT, MAX_BATCH_S, min_objects=BATCH_MIN_ENDPOINTS
        )
        self._cached_slices: dict[Key, dict[tuple[str, _ServicePort], _CachedSlice]] = {}
        """For each Service its slices, by their names and the Service port."""

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, slices, and pods for their deletion."""
        return [
            Watched(SERVICES, selection.own_keys),
            Watched(SLICES, _keys_of_slice, self._batch_period),
            Watched(PODS, self._track_terminating, self._batch_period),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the index of terminating pods; returns all Services, and those that are gone but have listeners."""
        terminating_pods = filter(pods.is_terminating, self._registry.list(PODS))
        self._terminating_uids = {selection.key_of(pod): pod["metadata"]["uid"] for pod in terminating_pods}
        return {*map(selection.key_of, self._registry.list(SERVICES)), *self._listeners}

    async def sync(self, key: Key) -> float | None:
        """Open and close listeners, and set the backends of the open ones.

        Returns None: there is no time of a next sync. Raises StatusError, and CannotListen when all else is done.
        """
        service = self._registry.find(SERVICES, *key)
        namespace, name = key
        service_port_by_address = _listen_addresses(service, self._node_address) if service else {}
        listeners = self._listeners.setdefault(key, {})
        for address in listeners.keys() - service_port_by_address.keys():
            listeners.pop(address).close()
        _close_conflicting(listeners, service_port_by_address)
        self._report_not_served(key, service)
        if service is None or not service_port_by_address:
            self._listeners.pop(key, None)
            self._cached_slices.pop(key, None)
            self._batch_period.forget(key)
            return None
        listen_error = await self._open_missing(listeners, service_port_by_address)
        endpoint_slices = self._registry.list(SLICES, namespace, labels={slices.SERVICE_NAME: name})
        endpoint_count = sum(len(endpoint_slice.get("endpoints") or []) for endpoint_slice in endpoint_slices)
        self._batch_period.note(key, endpoint_count)
        for address, listener in listeners.items():
            backends = self._cached_backends(key, endpoint_slices, service_port_by_address[address])
            listener.balancer.replace(backends, _affinity_s(service))
        self._drop_other_slices(key, endpoint_slices)
        await self._write_port_map(service, listeners)
        if listen_error is not None:  # last, so that the ports that are open are served
            raise listen_error
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record an event for a Service that is not reachable on its clusterIP."""
        service = self._registry.find(SERVICES, *key)
        if service is not None and isinstance(error, CannotListen):
            self._events.event(service, "Warning", "FailedToListen", str(error))

    def close(self) -> None:
        """Stop listening and reset all connections, including those of deleted Services."""
        for listeners in self._listeners.values():
            for listener in listeners.values():
                listener.close()
        self._listeners.clear()
        self._connections.abort_all()

    def _report_not_served(self, key: Key, service: Object | None) -> None:
        """Record an event, once, for the ports of a Service whose protocol is not proxied."""
        ports_not_served = ", ".join(_ports_not_served(service)) if service else ""
        if service is not None and ports_not_served and self._reported_ports.get(key) != ports_not_served:
            message = f"only TCP and UDP are served, not {ports_not_served}: reach the pods directly"
            self._events.event(service, "Warning", "ProtocolNotServed", message)
        if ports_not_served:
            self._reported_ports[key] = ports_not_served
        else:
            self._reported_ports.pop(key, None)

    def _track_terminating(self, event: ObjectEvent) -> Iterable[Key]:
        """Update the index of terminating pods; returns the Services that a pod which begins to terminate may concern.

        These are the Services of its namespace that have listeners: which have it as an endpoint, only slices show.
        """
        key, uid = selection.key_of(event.object), event.object["metadata"]["uid"]
        if event.type == "DELETED":
            if self._terminating_uids.get(key) == uid:
                del self._terminating_uids[key]
            return []
        if not pods.is_terminating(event.object) or self._terminating_uids.get(key) == uid:
            return []
        self._terminating_uids[key] = uid
        pod_namespace, _ = key
        return [(namespace, service) for namespace, service in self._listeners if namespace == pod_namespace]

    async def _open_missing(
        self, listeners: dict[ListenAddress, Listener], addresses: Iterable[ListenAddress]
    ) -> CannotListen | None:
        """Open missing listeners, high ports first, as low ports may have to move to free high ones.

        Returns the error of the last port that could not be opened, None if all were.

        Args:
            listeners: the open listeners of the Service, to which the new ones are added.
            addresses: all addresses that the Service needs.
        """
        listen_error = None
        for address in sorted(addresses, key=attrgetter("port"), reverse=True):
            if address in listeners:
                continue
            try:
                listeners[address] = await self._open_listener(address)
            except OSError as error:
                listen_error = _cannot_listen(address, error)
        return listen_error

    async def _open_listener(self, address: ListenAddress) -> Listener:
        """Open the listener for the protocol of `address`. Raises OSError."""
        host_port = address.host, address.port
        if address.protocol == UDP:
            return await datagram_listener.listen(host_port, self._connections, self._clock)
        return await port_listener.listen(host_port, self._connections, self._clock)

    def _cached_backends(self, key: Key, endpoint_slices: Iterable[Object], service_port: _ServicePort) -> Backends:
        """The backends of a port; a slice that is the identical object as in the last sync is not read again."""
        cache = self._cached_slices.setdefault(key, {})
        ready: list[Address] = []
        draining: list[Address] = []
        for endpoint_slice in endpoint_slices:
            cache_key = endpoint_slice["metadata"]["name"], service_port
            if cache_key not in cache or cache[cache_key].slice is not endpoint_slice:
                slice_backends = _backends_of(endpoint_slice, service_port, {})
                cache[cache_key] = _CachedSlice(
                    endpoint_slice, frozenset(_endpoint_pods(endpoint_slice)), slice_backends
                )
            cached = cache[cache_key]
            has_terminating_pod = not self._terminating_uids.keys().isdisjoint(cached.pods)
            backends = (
                _backends_of(endpoint_slice, service_port, self._terminating_uids)
                if has_terminating_pod
                else cached.backends
            )
            ready += backends.ready
            draining += backends.draining
        return Backends(tuple(ready), tuple(draining))

    def _drop_other_slices(self, key: Key, endpoint_slices: Iterable[Object]) -> None:
        """Remove all slices but these from the cache."""
        kept_names = {endpoint_slice["metadata"]["name"] for endpoint_slice in endpoint_slices}
        self._cached_slices[key] = {
            (slice_name, service_port): cached
            for (slice_name, service_port), cached in self._cached_slices.get(key, {}).items()
            if slice_name in kept_names
        }

    async def _write_port_map(self, service: Object, listeners: Mapping[ListenAddress, Listener]) -> None:
        """Write the ports that are served at another number to an annotation, and record events. Raises StatusError."""
        moved_ports = {
            address.port: listener.port for address, listener in listeners.items() if listener.port != address.port
        }
        if moved_ports == port_map.of(service):
            return

        def annotate(stored_service: Object) -> None:
            annotations = stored_service["metadata"].setdefault("annotations", {})
            if moved_ports:
                annotations[port_map.ANNOTATION] = port_map.text(moved_ports)
            else:
                annotations.pop(port_map.ANNOTATION, None)

        await write_errors.ignoring_gone(self._registry.mutate(SERVICES, *selection.key_of(service), annotate))
        for port, real_port in moved_ports.items():
            message = (
                f"ports below 1024 need privileges on this machine: port {port} is served at {real_port} "
                "(inside pods at both where the Node's condition LowPorts is True)"
            )
            self._events.event(service, "Warning", "PortMoved", message)


def _keys_of_slice(event: ObjectEvent) -> Iterable[Key]:
    """The Service that the label of a slice names; none without the label."""
    namespace, _ = selection.key_of(event.object)
    service = selection.labels_of(event.object).get(slices.SERVICE_NAME)
    return [(namespace, service)] if service else []


def _backends_of(endpoint_slice: Object, service_port: _ServicePort, terminating_uids: Mapping[Key, str]) -> Backends:
    """The backends of a port in a slice; as kube-proxy, only the first address of each endpoint.

    Args:
        terminating_uids: namespace and name of a terminating pod -> its uid, for slices that do not show it yet.
    """
    port_number = None if endpoint_slice["addressType"] == "FQDN" else _target_port(endpoint_slice, service_port)
    if port_number is None:
        return Backends()
    ready: list[Address] = []
    draining: list[Address] = []
    for endpoint in endpoint_slice.get("endpoints") or []:
        conditions, target = endpoint.get("conditions") or {}, endpoint.get("targetRef") or {}
        terminating_uid = terminating_uids.get((target.get("namespace", ""), target.get("name", "")))
        is_terminating = conditions.get("terminating", False) or terminating_uid == target.get("uid", "")
        if conditions.get("ready", True) and not is_terminating:
            ready.append((endpoint["addresses"][0], port_number))
        elif is_terminating and conditions.get("serving", False):
            draining.append((endpoint["addresses"][0], port_number))
    return Backends(tuple(ready), tuple(draining))


def _endpoint_pods(endpoint_slice: Object) -> Iterable[Key]:
    """Namespace and name of the pods of a slice's endpoints; empty texts for an endpoint without a pod."""
    for endpoint in endpoint_slice.get("endpoints") or []:
        target = endpoint.get("targetRef") or {}
        yield target.get("namespace", ""), target.get("name", "")


def _close_conflicting(listeners: dict[ListenAddress, Listener], addresses: Container[ListenAddress]) -> None:
    """Close listeners at a substitute number that is now a port of the Service itself; they get another number.

    Args:
        addresses: all addresses that the Service needs.
    """
    for address, listener in list(listeners.items()):
        real_address = address._replace(port=listener.port)
        if real_address != address and real_address in addresses:
            listeners.pop(address).close()


def _listen_addresses(service: Object, node_address: str) -> dict[ListenAddress, _ServicePort]:
    """The addresses to listen on for a Service, each with its Service port; empty if it has no clusterIP.

    Args:
        node_address: the IP address on which node ports are listened on, empty for none.
    """
    spec = service["spec"]
    host = spec.get("clusterIP") or "None"
    if host == "None" or spec.get("type") == "ExternalName":
        return {}
    service_port_by_address = {}
    for port in spec.get("ports") or []:
        service_port = _ServicePort(port.get("name") or "", port.get("protocol", TCP))
        if service_port.protocol not in PROXIED_PROTOCOLS:
            continue
        service_port_by_address[ListenAddress(host, port["port"], service_port.protocol)] = service_port
        if node_address and port.get("nodePort"):
            service_port_by_address[ListenAddress(node_address, port["nodePort"], service_port.protocol)] = service_port
    return service_port_by_address


def _ports_not_served(service: Object) -> list[str]:
    """The ports of a Service whose protocol is not proxied, as `132/SCTP`."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        return []
    ports = spec.get("ports") or []
    not_served = [port for port in ports if port.get("protocol", TCP) not in PROXIED_PROTOCOLS]
    return [f"{port['port']}/{port['protocol']}" for port in not_served]


def _target_port(endpoint_slice: Object, service_port: _ServicePort) -> int | None:
    """The number of the endpoints' port for a Service port, None if the slice has none."""
    for port in endpoint_slice.get("ports") or []:
        if ((port.get("name") or ""), port.get("protocol", TCP)) == service_port:
            return int(port["port"])
    return None


def _affinity_s(service: Object) -> int | None:
    """The timeout of the session affinity in seconds, None if the Service has none."""
    spec = service["spec"]
    if spec.get("sessionAffinity") != "ClientIP":
        return None
    client_ip_config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return int(client_ip_config.get("timeoutSeconds", DEFAULT_AFFINITY_S))


def _cannot_listen(address: ListenAddress, error: OSError) -> CannotListen:
    """The error with the reason why the address cannot be listened on, for an event of the Service."""
    host_port = f"{address.host}:{address.port}"
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"cannot listen on {host_port}: another process of this machine uses that port")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(f"cannot listen on {host_port}: this machine has no such address")
    return CannotListen(f"cannot listen on {host_port}: {error.strerror or error}")
