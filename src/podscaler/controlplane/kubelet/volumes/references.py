"""Resolves references of containers: fields of the pod, resource amounts, keys of ConfigMaps and Secrets.

Called by `kubelet.volumes.environment` and `volume_files`. Pure, except for lookups in the registry's memory
(`FindObject`). Pods, containers and references are the API's JSON objects. A reference that cannot be resolved is a
`ContainerConfigError`: `kubelet.pods.pod_worker` shows its reason in the status of the container, and tries again.

Source: Downward API, ConfigMaps, Secrets (Kubernetes documentation).
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

from podscaler.api.machinery.quantity import Quantity, QuantityError
from podscaler.controlplane.registry.registry import Object

DataKind = Literal["configmap", "secret"]
CONFIG_ERROR: Final = "CreateContainerConfigError"

_LABEL_OR_ANNOTATION = re.compile(r"metadata\.(?P<field>labels|annotations)\['(?P<key>.*)'\]", re.DOTALL)


class ContainerConfigError(Exception):
    """A container cannot be created as its spec says.

    Args:
        message: the message of the container's status and event.
        reason: the value of `state.waiting.reason`.
    """

    def __init__(self, message: str, *, reason: str = CONFIG_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """The addresses and the node of a pod, known before they are in its status.

    Attributes:
        allocatable: the node's resources, used for limits that are not set: `{"cpu": "2", ...}`.
    """

    pod_ip: str
    host_ip: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)


FindObject = Callable[[str, str, str], Object | None]
"""`Registry.find`: resource (such as `configmaps`), namespace and name -> the object, or None."""


def field_value(pod: Mapping[str, Any], path: str, placement: PodPlacement) -> str:
    """The value of a fieldRef; an absent label or annotation is empty. Raises ContainerConfigError.

    Args:
        path: the `fieldPath`, such as `metadata.labels['app']`. A new one is a case here.
    """
    meta, spec = pod["metadata"], pod["spec"]
    if single_key := _LABEL_OR_ANNOTATION.fullmatch(path):
        labels_or_annotations = meta.get(single_key["field"]) or {}
        return str(labels_or_annotations.get(single_key["key"], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(meta[path.removeprefix("metadata.")])
        case "metadata.labels" | "metadata.annotations":
            return _map_lines(meta.get(path.removeprefix("metadata.")) or {})
        case "spec.nodeName":
            return placement.node_name
        case "spec.serviceAccountName":
            return str(spec.get("serviceAccountName") or "default")
        case "status.podIP" | "status.podIPs":
            return placement.pod_ip
        case "status.hostIP" | "status.hostIPs":
            return placement.host_ip
    raise ContainerConfigError(f"unsupported fieldPath: {path}")


def resource_value(
    pod: Mapping[str, Any], reference: Mapping[str, Any], container: str, placement: PodPlacement
) -> str:
    """The value of a resourceFieldRef: the amount in units of its divisor, rounded up; an absent request is 0.

    Args:
        reference: a core/v1 ResourceFieldSelector; its `resource` is `limits.NAME` or `requests.NAME`.
        container: the name of the container, for a reference that names none.

    Raises ContainerConfigError.
    """
    name = reference.get("containerName") or container
    container_spec = _get_container(pod, name)
    limits_or_requests, _, resource = str(reference.get("resource", "")).partition(".")
    if limits_or_requests not in ("limits", "requests") or not resource:
        raise ContainerConfigError(f"unsupported container resource: {reference.get('resource', '')}")
    amounts = (container_spec.get("resources") or {}).get(limits_or_requests) or {}
    fallback = placement.allocatable.get(resource, "0") if limits_or_requests == "limits" else "0"
    try:
        amount = _exact_amount(str(amounts.get(resource, fallback)))
        divisor = _exact_amount(str(reference.get("divisor") or "1")) or Fraction(1)  # 0 counts as 1, as upstream
    except QuantityError as error:
        raise ContainerConfigError(str(error)) from error
    rounded_up = -(-amount // divisor)  # floor division of the negative amount
    return str(rounded_up)


def text_data(kind: DataKind, find: FindObject, namespace: str, name: str) -> dict[str, str] | None:
    """The `data` of a ConfigMap or Secret: key -> text, values of Secrets decoded; None if there is no such object.

    Bytes that are not UTF-8 become surrogates, which an environment turns into the same bytes.
    """
    config_or_secret = find(f"{kind}s", namespace, name)
    if config_or_secret is None:
        return None
    encoded_data = config_or_secret.get("data") or {}
    if kind == "configmap":
        return {key: str(value) for key, value in encoded_data.items()}
    return {key: decode_base64(value).decode("utf-8", "surrogateescape") for key, value in encoded_data.items()}


def key_value(kind: DataKind, find: FindObject, namespace: str, selector: Mapping[str, Any]) -> str | None:
    """The value of a configMapKeyRef or secretKeyRef; None if it is optional and absent.

    Args:
        selector: a core/v1 ConfigMapKeySelector or SecretKeySelector.

    Raises ContainerConfigError if it is absent and not optional.
    """
    name, key = selector.get("name", ""), selector["key"]
    text_by_key = text_data(kind, find, namespace, name)
    if text_by_key is not None and key in text_by_key:
        return text_by_key[key]
    if selector.get("optional"):
        return None
    if text_by_key is None:
        raise ContainerConfigError(f'{kind} "{name}" not found')
    kind_name = {"configmap": "ConfigMap", "secret": "Secret"}[kind]
    raise ContainerConfigError(f"couldn't find key {key} in {kind_name} {namespace}/{name}")


def decode_base64(base64_text: str) -> bytes:
    """The bytes of a value of Secret.data or ConfigMap.binaryData, whose base64 the API server has validated."""
    return base64.b64decode(base64_text)


def _map_lines(labels_or_annotations: Mapping[str, str]) -> str:
    """Labels or annotations as the downward API shows them: lines KEY="VALUE", sorted by key."""
    return "\n".join(
        f"{key}={json.dumps(labels_or_annotations[key], ensure_ascii=False)}" for key in sorted(labels_or_annotations)
    )


def _get_container(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The core/v1 Container of the pod with this name. Raises ContainerConfigError if there is none."""
    pod_spec = pod["spec"]
    containers: list[Mapping[str, Any]] = [*pod_spec["containers"], *(pod_spec.get("initContainers") or [])]
    for container in containers:
        if container["name"] == name:
            return container
    raise ContainerConfigError(f"container {name} not found")


def _exact_amount(quantity_text: str) -> Fraction:
    """The value of a quantity such as `500m` or `1Gi`. Raises QuantityError."""
    quantity = Quantity.parse(quantity_text)
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.scale
