"""The values that containers may ask for: fields of their pod, resource amounts, keys of ConfigMaps and Secrets.

Called by `environment` and `volume_files`. Pure but for lookups in the registry's memory, which come as functions.
Whatever cannot be resolved is a `ConfigFault`: it holds the container back with its reason, and is tried again.

Source: Downward API, ConfigMaps, Secrets (Kubernetes documentation).
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from podscaler.api.machinery.quantity import Quantity, QuantityError
from podscaler.controlplane.registry.registry import Object

CONFIG_ERROR: Final = "CreateContainerConfigError"

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)


class ConfigFault(Exception):
    """A container cannot be created as its spec says.

    Args:
        message: the sentence for status and event.
        reason: what `state.waiting.reason` says.
    """

    def __init__(self, message: str, *, reason: str = CONFIG_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """Where a pod runs.

    Attributes:
        pod_ip, host_ip, node_name: as its status and spec say, known before they are written there.
        allocatable: the node's resources, which stand in for limits that are not set: `{"cpu": "2", ...}`.
    """

    pod_ip: str
    host_ip: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)


Find = Callable[[str, str, str], Object | None]
"""`Registry.find`: resource, namespace, name."""


def field_value(pod: Mapping[str, Any], path: str, place: PodPlacement) -> str:
    """The text of a fieldRef. Raises ConfigFault for a path that is not offered."""
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
        raise ConfigFault(f"unsupported fieldPath: {path}")
    return values[path]()


def resource_value(pod: Mapping[str, Any], reference: Mapping[str, Any], container: str, place: PodPlacement) -> str:
    """The text of a resourceFieldRef: the amount in units of its divisor, rounded up.

    Args:
        container: whose resources are meant where the reference names none. Raises ConfigFault.
    """
    name = reference.get("containerName") or container
    spec = _find_container(pod, name)
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ConfigFault(f"unsupported container resource: {reference.get('resource', '')}")
    amounts = (spec.get("resources") or {}).get(kind) or {}
    fallback = place.allocatable.get(resource, "0") if kind == "limits" else "0"
    try:
        amount = _fraction(str(amounts.get(resource, fallback)))
        divisor = _fraction(str(reference.get("divisor") or "1")) or Fraction(1)
    except QuantityError as error:
        raise ConfigFault(str(error)) from error
    return str(-(-amount // divisor))


def config_map_value(find: Find, namespace: str, selector: Mapping[str, Any]) -> str | None:
    """The text of a configMapKeyRef; None where it is optional and absent. Raises ConfigFault."""
    name, key = selector.get("name", ""), selector["key"]
    found = find("configmaps", namespace, name)
    if found is None:
        return _unless_optional(selector, f'configmap "{name}" not found')
    data = found.get("data") or {}
    if key not in data:
        return _unless_optional(selector, f"couldn't find key {key} in ConfigMap {namespace}/{name}")
    return str(data[key])


def secret_value(find: Find, namespace: str, selector: Mapping[str, Any]) -> str | None:
    """The text of a secretKeyRef; None where it is optional and absent. Raises ConfigFault."""
    name, key = selector.get("name", ""), selector["key"]
    found = find("secrets", namespace, name)
    if found is None:
        return _unless_optional(selector, f'secret "{name}" not found')
    data = found.get("data") or {}
    if key not in data:
        return _unless_optional(selector, f"couldn't find key {key} in Secret {namespace}/{name}")
    return decoded(data[key]).decode("utf-8", "surrogateescape")


def decoded(value: str) -> bytes:
    """The bytes of an entry of Secret.data or ConfigMap.binaryData."""
    return base64.b64decode(value)


def _unless_optional(selector: Mapping[str, Any], message: str) -> str | None:
    if selector.get("optional"):
        return None
    raise ConfigFault(message)


def _lines(entries: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={json.dumps(entries[key], ensure_ascii=False)}" for key in sorted(entries))


def _find_container(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for group in ("containers", "initContainers"):
        for spec in pod["spec"].get(group) or []:
            if spec["name"] == name:
                return dict(spec)
    raise ConfigFault(f"container {name} not found")


def _fraction(text: str) -> Fraction:
    quantity = Quantity.parse(text)
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.scale
