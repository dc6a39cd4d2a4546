"""Sets the API defaults of pod specs, alone (Pod) or inside a template (Deployment, ReplicaSet, ...), in place.

Called by the records of those kinds before validation. A new defaulted field of containers: add it to
`_set_container_defaults`. Pods and their parts are JSON objects.

Source: the objects that a v1.37 server stores (golden captures), the API reference of core/v1.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.resource.resources import Object

GRACE_PERIOD_S = 30
"""The time that a pod has to end after a deletion, if it does not say otherwise."""

_DEFAULT_FILE_MODE = 0o644
_DEFAULT_TOKEN_EXPIRATION_S = 3600


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
    """Yields all containers of a pod spec: init containers, containers, ephemeral containers."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or []


def _mirror_service_account(spec: Object) -> None:
    """Copies `serviceAccountName` to its old name `serviceAccount`, or the reverse."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_container_defaults(container: Object, *, host_network: bool) -> None:
    """Sets the defaults of a container, in place; with the host network each port is a host port, too."""
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
    for probe_field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(probe_field):
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
    """Sets the defaults of the source of a variable or of a file of the downward API, in place."""
    if field_ref := source.get("fieldRef"):
        field_ref.setdefault("apiVersion", "v1")
    if file_key_ref := source.get("fileKeyRef"):
        file_key_ref.setdefault("optional", False)


def _set_probe_defaults(probe: Object) -> None:
    """Sets the defaults of a probe, in place."""
    # Zero means unset for these four; a client that sends 0 gets the default as well.
    for field, default in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe[field] = probe.get(field) or default
    _set_http_defaults(probe)
    if grpc := probe.get("grpc"):
        grpc.setdefault("service", "")


def _set_http_defaults(handler: Object) -> None:
    """Sets the defaults of an httpGet handler of a probe or hook, in place."""
    if (http_get := handler.get("httpGet")) is not None:
        http_get["path"] = http_get.get("path") or "/"
        http_get["scheme"] = http_get.get("scheme") or "HTTP"


def _set_requests_defaults(resources: Object) -> None:
    """Sets missing requests to the limits, in place."""
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _set_volume_defaults(volume: Object) -> None:
    """Set the defaults of a volume; one without any source is an emptyDir."""
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source_type in ("secret", "configMap", "downwardAPI", "projected"):
        if (source := volume.get(source_type)) is not None:
            source.setdefault("defaultMode", _DEFAULT_FILE_MODE)
    if (host_path := volume.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    _set_files_defaults(volume.get("downwardAPI") or {})
    for source in (volume.get("projected") or {}).get("sources") or []:
        _set_files_defaults(source.get("downwardAPI") or {})
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", _DEFAULT_TOKEN_EXPIRATION_S)


def _set_files_defaults(downward_api: dict[str, Any]) -> None:
    """Sets the defaults of the files of a downward API volume, in place."""
    for file in downward_api.get("items") or []:
        _set_source_defaults(file)
