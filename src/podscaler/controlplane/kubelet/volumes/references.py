"""Resolves references of containers: fields of the pod, resource amounts, keys of ConfigMaps and Secrets.

Called by `environment` and `volume_files`. Pure, except for lookups in the registry's memory (`FindObject`). A
reference that cannot be resolved is a `ContainerConfigError`: the container waits with its reason and is tried again.

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

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)


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
"""`Registry.find`: the object with this resource, namespace and name, or None."""


def field_value(pod: Mapping[str, Any], path: str, place: PodPlacement) -> str:
    """The value of a fieldRef; an absent label or annotation is empty. Raises ContainerConfigError."""
    meta, spec = pod["metadata"], pod["spec"]
    if keyed := _KEYED.fullmatch(path):
        return str((meta.get(keyed.group(1)) or {}).get(keyed.group(2), ""))
    values: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: meta["name"],
        "metadata.namespace": lambda: meta["namespace"],
        "metadata.uid": lambda: meta["uid"],
        "metadata.labels": lambda: _lines(meta.get("labels") or {}),
        "metadata.annotations": lambda: _lines(meta.get("annotations") or {}),
        "spec.nodeName": lambda: place.node_name,
        "spec.serviceAccountName": lambda: spec.get("serviceAccountName") or "default",
        "status.podIP": lambda: place.pod_ip,
        "status.podIPs": lambda: place.pod_ip,
        "status.hostIP": lambda: place.host_ip,
        "status.hostIPs": lambda: place.host_ip,
    }
    if path not in values:
        raise ContainerConfigError(f"unsupported fieldPath: {path}")
    return values[path]()


def resource_value(pod: Mapping[str, Any], reference: Mapping[str, Any], container: str, place: PodPlacement) -> str:
    """The value of a resourceFieldRef: the amount in units of its divisor, rounded up.

    Args:
        container: the name of the container, for a reference that names none.

    Raises ContainerConfigError.
    """
    name = reference.get("containerName") or container
    spec = _find_container(pod, name)
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ContainerConfigError(f"unsupported container resource: {reference.get('resource', '')}")
    amounts = (spec.get("resources") or {}).get(kind) or {}
    fallback = place.allocatable.get(resource, "0") if kind == "limits" else "0"
    try:
        amount = _fraction(str(amounts.get(resource, fallback)))
        divisor = _fraction(str(reference.get("divisor") or "1")) or Fraction(1)
    except QuantityError as error:
        raise ContainerConfigError(str(error)) from error
    return str(-(-amount // divisor))


def text_data(kind: DataKind, find: FindObject, namespace: str, name: str) -> dict[str, str] | None:
    """The `data` of a ConfigMap or Secret as text, values of Secrets decoded; None if there is no such object."""
    obj = find(f"{kind}s", namespace, name)
    if obj is None:
        return None
    data = obj.get("data") or {}
    if kind == "configmap":
        return {key: str(value) for key, value in data.items()}
    return {key: decoded(value).decode("utf-8", "surrogateescape") for key, value in data.items()}


def key_value(kind: DataKind, find: FindObject, namespace: str, selector: Mapping[str, Any]) -> str | None:
    """The value of a configMapKeyRef or secretKeyRef; None if it is optional and absent.

    Raises ContainerConfigError if it is absent and not optional.
    """
    name, key = selector.get("name", ""), selector["key"]
    data = text_data(kind, find, namespace, name)
    if data is not None and key in data:
        return data[key]
    if selector.get("optional"):
        return None
    if data is None:
        raise ContainerConfigError(f'{kind} "{name}" not found')
    shown = {"configmap": "ConfigMap", "secret": "Secret"}[kind]
    raise ContainerConfigError(f"couldn't find key {key} in {shown} {namespace}/{name}")


def decoded(value: str) -> bytes:
    """The bytes of a value of Secret.data or ConfigMap.binaryData, which is base64."""
    return base64.b64decode(value)


def _lines(entries: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={json.dumps(entries[key], ensure_ascii=False)}" for key in sorted(entries))


def _find_container(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for group in ("containers", "initContainers"):
        for spec in pod["spec"].get(group) or []:
            if spec["name"] == name:
                return dict(spec)
    raise ContainerConfigError(f"container {name} not found")


def _fraction(text: str) -> Fraction:
    quantity = Quantity.parse(text)
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.scale
