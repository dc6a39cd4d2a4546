"""Sets the API defaults of pod specs, alone (Pod) or inside a template (Deployment, ReplicaSet, ...), in place.

Called by the records of those kinds before validation. A new defaulted field of containers: add it to
`_set_container_defaults`.

Source: what a v1.37 server stores (golden captures), the API reference of core/v1.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.resource.resources import Object

GRACE_PERIOD_S = 30

_DEFAULT_FILE_MODE = 0o644


def set_pod_defaults(pod: Object) -> None:
    """Defaults of a Pod: those of its spec, requests from limits, and service links."""
    spec = pod.setdefault("spec", {})
    set_pod_spec_defaults(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec):
        _set_requests_defaults(container.get("resources") or {})


def set_template_defaults(workload_spec: Object) -> None:
    """Defaults of the `template` of a workload's spec."""
    set_pod_spec_defaults(workload_spec.setdefault("template", {}).setdefault("spec", {}))


def set_pod_spec_defaults(spec: Object) -> None:
    """Defaults that pods and templates share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_PERIOD_S)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    _mirror_service_account(spec)
    for container in containers(spec):
        _set_container_defaults(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or []:
        _set_volume_defaults(volume)


def containers(spec: Object) -> Iterator[Object]:
    """All containers of a pod spec: init containers, containers, ephemeral containers."""
    for group in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(group) or []


def _mirror_service_account(spec: Object) -> None:
    """Copies `serviceAccountName` to its old name `serviceAccount`, or the reverse."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_container_defaults(container: Object, *, host_network: bool) -> None:
    """Set the defaults of a container; with the host's network each port is a host port too."""
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port.get("containerPort", 0))
    for variable in container.get("env") or []:
        _set_source_defaults(variable.get("valueFrom") or {})
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(kind):
            _set_probe_defaults(probe)
    for hook in ("postStart", "preStop"):
        _set_http_defaults((container.get("lifecycle") or {}).get(hook) or {})


def _pull_policy(image: str) -> str:
    """`Always` for images without a tag, or with the tag `latest`, and without a digest."""
    if not image or "@" in image:
        return "IfNotPresent"
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _set_source_defaults(source: Object) -> None:
    if field := source.get("fieldRef"):
        field.setdefault("apiVersion", "v1")
    if file := source.get("fileKeyRef"):
        file.setdefault("optional", False)


def _set_probe_defaults(probe: Object) -> None:
    # Zero means unset for these four; a client that sends 0 gets the default as well.
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[key] = probe.get(key) or value
    _set_http_defaults(probe)
    if grpc := probe.get("grpc"):
        grpc.setdefault("service", "")


def _set_http_defaults(handler: Object) -> None:
    if (http := handler.get("httpGet")) is not None:
        http["path"] = http.get("path") or "/"
        http["scheme"] = http.get("scheme") or "HTTP"


def _set_requests_defaults(resources: Object) -> None:
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _set_volume_defaults(volume: Object) -> None:
    """Set the defaults of a volume; one without any source is an emptyDir."""
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if (source := volume.get(kind)) is not None:
            source.setdefault("defaultMode", _DEFAULT_FILE_MODE)
    if (host_path := volume.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    _set_files_defaults(volume.get("downwardAPI") or {})
    for source in (volume.get("projected") or {}).get("sources") or []:
        _set_files_defaults(source.get("downwardAPI") or {})
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)


def _set_files_defaults(downward: dict[str, Any]) -> None:
    for item in downward.get("items") or []:
        _set_source_defaults(item)
