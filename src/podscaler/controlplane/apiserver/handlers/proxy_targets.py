"""Resolves `pods/ID/proxy`, `services/ID/proxy` and `nodes/ID/proxy` to the address that a request is sent to.

`endpoint_proxy` calls `resolve` for each request. An ID is NAME, NAME:PORT or SCHEME:NAME:PORT. Addresses are those
that the node gave its pods and its own endpoints, never those of an object's status, which clients may write: no
request goes to a host that the object does not own.

A new kind with a subresource `proxy`: a function `_resolve_...` and a line in `_RESOLVERS`.

Source: kube-apiserver's ResourceLocation of pods, Services and nodes, and their messages.
Differs: a pod's port has to be a number; of a node only the kubelet's port is reached, as others would be those of the
whole machine.
"""

import random
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import service_resolver
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.streaming import pod_targets
from podscaler.controlplane.controllers.endpoints.slices import SERVICE_NAME
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES

SCHEMES = ("", "http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}
PORT_MAX = 65535
PORT_DIGITS_MAX = 18
"""A longer text is a name of a port: as upstream, only a number of 64 bits is a port number."""


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """Where a request is sent.

    Attributes:
        scheme: `http` or `https`.
        host, port: the address.
        make_tls: makes the TLS settings, and is called in a thread; None if certificates are not verified.
    """

    scheme: str
    host: str
    port: int
    make_tls: Callable[[], ssl.SSLContext] | None = None


@dataclass(frozen=True, slots=True)
class _ProxyId:
    """The parts of an ID; `scheme` and `port` are empty if they are not given."""

    scheme: str
    name: str
    port: str

    @property
    def url_scheme(self) -> str:
        """The scheme, `http` by default."""
        return self.scheme or "http"


def resolve(server: ServerContext, request: ResourceRequest) -> ProxyTarget:
    """The target of a request to the subresource `proxy`.

    Raises StatusError: 400 for an invalid ID or an address that may not be reached, 404 where there is no such object,
    503 where a Service has no endpoint or nothing runs here.
    """
    kind = request.served.resource.singular
    requested = _parse_id(request.path.name)
    if requested is None:
        raise http_errors.bad_request(f'invalid {kind} request "{request.path.name}"')
    return _RESOLVERS[request.resource_key](server, request, requested)


def _parse_id(proxy_id: str) -> _ProxyId | None:
    """The parts of an ID, None for one that is not valid (apimachinery's SplitSchemeNamePort)."""
    match proxy_id.split(":"):
        case [name]:
            scheme, port = "", ""
        case [name, port]:
            scheme = ""
        case [scheme, name, port]:
            pass
        case _:
            return None
    return _ProxyId(scheme, name, port) if name and scheme in SCHEMES else None


def _resolve_pod(server: ServerContext, request: ResourceRequest, requested: _ProxyId) -> ProxyTarget:
    """The address of a pod, with the requested port, or else its first declared one. Raises StatusError 400, 404."""
    pod: Object = server.objects.get(request.resource_key, request.path.namespace, requested.name).decode()
    declared_ports = [
        port["containerPort"] for container in pod["spec"]["containers"] for port in container.get("ports") or ()
    ]
    if requested.port:
        port = _parse_port(requested.port)
        if port is None:
            raise http_errors.bad_request(f'invalid pod request "{request.path.name}"')
    else:
        port = declared_ports[0] if declared_ports else DEFAULT_PORTS[requested.url_scheme]
    address = pod_targets.get_connections(server).locate(pod, port)
    if address is None:
        raise http_errors.bad_request("address not allowed")
    return ProxyTarget(requested.url_scheme, *address)


def _resolve_service(server: ServerContext, request: ResourceRequest, requested: _ProxyId) -> ProxyTarget:
    """The address of a ready endpoint of a Service, chosen at random. Raises StatusError 404, 503."""
    namespace, port_name = request.path.namespace, requested.port
    if requested.port.isdecimal() and requested.port.isascii() and len(requested.port) <= PORT_DIGITS_MAX:
        service: Object = server.objects.get(request.resource_key, namespace, requested.name).decode()
        service_port = service_resolver.find_port(service, int(requested.port))
        if service_port is None:
            message = f'no service port {int(requested.port)} found for service "{requested.name}"'
            raise _unavailable(message)
        port_name = service_port.get("name", "")
    addresses = list(_ready_pod_addresses(server, namespace, requested.name, port_name))
    if not addresses:
        raise _unavailable(f'no endpoints available for service "{requested.name}"')
    return ProxyTarget(requested.url_scheme, *random.choice(addresses))


def _ready_pod_addresses(
    server: ServerContext, namespace: str, service_name: str, port_name: str
) -> Iterator[service_resolver.Address]:
    """The addresses of a Service's ready endpoints that are pods of its namespace, for the port of that name.

    Raises StatusError 503 for a server without a node.
    """
    connections = pod_targets.get_connections(server)
    slice_entries = server.objects.list(SLICES, namespace).entries
    slices = [entry.decode() for entry in slice_entries if entry.labels.get(SERVICE_NAME) == service_name]
    for endpoint, port in service_resolver.ready_endpoints(slices, port_name):
        reference = endpoint.get("targetRef") or {}
        if reference.get("kind") != "Pod" or reference.get("namespace") != namespace:
            continue
        pod_entry = server.objects.find("pods", namespace, reference.get("name", ""))
        address = None if pod_entry is None else connections.locate(pod_entry.decode(), port)
        if address is not None:
            yield address


def _resolve_node(server: ServerContext, request: ResourceRequest, requested: _ProxyId) -> ProxyTarget:
    """The address of the node's kubelet. Raises StatusError 400, 404, 503."""
    server.objects.get(request.resource_key, "", requested.name)  # checks that there is a Node
    find_endpoint = server.parts.find_node_endpoint
    endpoint = find_endpoint() if find_endpoint is not None else None
    if endpoint is None or endpoint.node_name != requested.name:
        raise _unavailable(f'no endpoint of node "{requested.name}" is known')
    if requested.port and requested.port != str(endpoint.port):
        raise http_errors.bad_request("address not allowed")
    return ProxyTarget("https", endpoint.host, endpoint.port, endpoint.make_client_tls)


def _parse_port(port_text: str) -> int | None:
    """The port number in a text, None for a text that is not one."""
    is_number = port_text.isdecimal() and port_text.isascii() and len(port_text) <= len(str(PORT_MAX))
    return int(port_text) if is_number and 0 < int(port_text) <= PORT_MAX else None


def _unavailable(message: str) -> StatusError:
    """503 with the given message."""
    return StatusError(message, code=503, reason="ServiceUnavailable")


_RESOLVERS = {"pods": _resolve_pod, "services": _resolve_service, "nodes": _resolve_node}
"""The function that finds the address, by the `Resource.key` of the request."""
