"""Resolves the pod and the container of a request for logs, exec, attach or port-forward, and checks them.

`pod_logs`, `pod_sessions` and `pod_ports` call it before their responses start, and `handlers.proxy_targets`
`get_connections`. Their order in the handlers is that of kube-apiserver's errors.

Source: kube-apiserver's registry of pods (its default container, its messages).
"""

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, name_checks, websockets
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.registry.pod_connections import PodConnections


def get_pod(server: ServerContext, request: ResourceRequest) -> Object:
    """The pod of the path. Raises StatusError 400, 404."""
    name_checks.check_path_name(request.path.name)
    pod: Object = server.objects.get(request.resource_key, request.path.namespace, request.path.name).decode()
    return pod


def choose_container(requested: str, pod: Object) -> str:
    """The name of the requested container (empty: the only one of the pod).

    Raises StatusError 400 if it does not exist, or the name is missing for a pod with several.
    """
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    container_fields = ("initContainers", "containers", "ephemeralContainers")
    names: list[str] = [container["name"] for field in container_fields for container in spec.get(field) or ()]
    if requested:
        if requested not in names:
            raise http_errors.bad_request(f"container {requested} is not valid for pod {pod_name}")
        return requested
    if len(spec.get("containers") or ()) == 1:
        only_name: str = spec["containers"][0]["name"]
        return only_name
    raise http_errors.bad_request(
        f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
    )


def check_has_node(server: ServerContext, pod: Object) -> None:
    """Check that a pod is assigned to an existing node. Raises StatusError 400, 404."""
    if not pod["spec"].get("nodeName"):
        raise http_errors.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    check_node_exists(server, pod)


def check_node_exists(server: ServerContext, pod: Object) -> None:
    """Check that the node of a pod exists. Raises StatusError 404."""
    server.objects.get("nodes", "", pod["spec"]["nodeName"])


def check_upgrade(request: ResourceRequest) -> None:
    """Check that the request asks for an upgrade. Raises StatusError 400."""
    if not websockets.is_upgrade(request.http):
        raise http_errors.bad_request("Upgrade request required")


def get_connections(server: ServerContext) -> PodConnections:
    """The connections to pods. Raises StatusError 503 for a server without a node."""
    if server.parts.connections is None:
        message = "streams lead to where pods run, and none run here"
        raise StatusError(message, code=503, reason="ServiceUnavailable")
    return server.parts.connections


def spdy_not_served() -> StatusError:
    """400: the client asks for SPDY, as kubectl did before WebSockets."""
    message = "only WebSocket streams are served: use kubectl 1.31 or newer, and leave its WebSocket support on"
    return http_errors.bad_request(message)
