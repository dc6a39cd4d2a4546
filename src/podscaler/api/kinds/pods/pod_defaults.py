"""Sets the API defaults of pod specs, alone (Pod) or inside a template (Deployment, ReplicaSet, ...), in place.

The API server calls the records of those kinds, which call this module, before validation; `podscaler.lint` completes
manifests with it. A new default: of the spec in `set_pod_spec_defaults`, of a container in `_set_container_defaults`,
only of Pods in `set_pod_defaults`. Pods and their parts are JSON objects.

Source: the objects that kube-apiserver v1.37 stores (tests/conformance/golden), the API reference of core/v1.
"""

from collections.abc import Iterator

from podscaler.api.resource.resources import Object

GRACE_PERIOD_S = 30
"""The time that a pod has to end after a deletion if its spec has no terminationGracePeriodSeconds."""

_DEFAULT_FILE_MODE = 0o644
_DEFAULT_TOKEN_EXPIRATION_S = 3600


def set_pod_defaults(pod: Object) -> None:
    """Defaults of a Pod: those of its spec, a positive grace period, service links, requests from limits."""
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
    """Makes the deprecated alias `serviceAccount` equal to `serviceAccountName`, or the reverse if only it is set."""
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
        _set_reference_defaults(variable.get("valueFrom") or {})
    for probe_field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(probe_field):
            _set_probe_defaults(probe)
    for hook in ("postStart", "preStop"):
        _set_http_defaults((container.get("lifecycle") or {}).get(hook) or {})


def _pull_policy(image: str) -> str:
    """`Always` for an image with the tag `latest` or without a tag, but not for one with a digest or for no image."""
    if not image or "@" in image:
        return "IfNotPresent"
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _set_reference_defaults(references: Object) -> None:
    """Sets the defaults of the references in a variable's `valueFrom` or in a downward API file, in place."""
    if field_ref := references.get("fieldRef"):
        field_ref.setdefault("apiVersion", "v1")
    if file_key_ref := references.get("fileKeyRef"):
        file_key_ref.setdefault("optional", False)


def _set_probe_defaults(probe: Object) -> None:
    """Sets the defaults of a probe, in place."""
    # Zero means unset for these four, as in Go; initialDelaySeconds has no default.
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
    """Sets the defaults of a volume, in place; one without any source is an emptyDir."""
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source_type in ("secret", "configMap", "downwardAPI", "projected"):
        if (source := volume.get(source_type)) is not None:
            source.setdefault("defaultMode", _DEFAULT_FILE_MODE)
    if (host_path := volume.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    _set_downward_file_defaults(volume.get("downwardAPI") or {})
    for source in (volume.get("projected") or {}).get("sources") or []:
        _set_downward_file_defaults(source.get("downwardAPI") or {})
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", _DEFAULT_TOKEN_EXPIRATION_S)


def _set_downward_file_defaults(downward_api: Object) -> None:
    """Sets the defaults of the files of a downward API volume or projection, in place."""
    for file in downward_api.get("items") or []:
        _set_reference_defaults(file)
