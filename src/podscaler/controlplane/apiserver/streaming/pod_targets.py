"""Which pod and container a request for logs or streams means, and the refusals of those that cannot be had.

Called by `pod_logs`, `pod_sessions` and `pod_ports`.

Source: the API server's registry of pods (its choice of a container and its words).
"""

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, names, responses, websockets
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse


def pod_of(plane: Plane, call: ResourceRequest) -> Object:
    """The pod of the path. Raises StatusError 400, 404."""
    names.check_in_path(call.path.name)
    pod: Object = plane.objects.get(call.key, call.path.namespace, call.path.name).decode()
    return pod


def container_of(asked: str, pod: Object) -> str:
    """The container asked for, or the pod's only one.

    Raises:
        StatusError: 400 where it does not exist, or has to be named.
    """
    spec, name = pod["spec"], pod["metadata"]["name"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    known = [container["name"] for group in groups for container in spec.get(group) or ()]
    if asked:
        if asked not in known:
            raise http_errors.bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(spec.get("containers") or ()) == 1:
        only: str = spec["containers"][0]["name"]
        return only
    raise http_errors.bad_request(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(known)}]"
    )


def check_host(plane: Plane, pod: Object) -> None:
    """Refuse a pod that no node has (400), or one that there is not (404)."""
    if not pod["spec"].get("nodeName"):
        raise http_errors.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    check_node(plane, pod)


def check_node(plane: Plane, pod: Object) -> None:
    """Refuse (404) a pod on a node that there is not."""
    plane.objects.get("nodes", "", pod["spec"]["nodeName"])


def check_upgrade(call: ResourceRequest) -> None:
    """Refuse (400) a request that does not ask for another protocol."""
    if not websockets.is_upgrade(call.request):
        raise http_errors.bad_request("Upgrade request required")


def no_pods_run() -> StatusError:
    """503: this server is alone."""
    text = "streams lead to where pods run, and none run here"
    return StatusError(text, code=503, reason="ServiceUnavailable")


def not_spoken() -> StatusError:
    """400: the client wants SPDY, as kubectl did before WebSockets."""
    text = "only WebSocket streams are served: use kubectl 1.31 or newer, and leave its WebSocket support on"
    return http_errors.bad_request(text)


def said_by_node(text: str, status: int) -> EncodedResponse:
    """What the node refuses, as a plain text: clients show it behind `unable to upgrade connection:`."""
    return responses.text(text, status)
