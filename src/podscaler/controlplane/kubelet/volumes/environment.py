"""The environment of a container: what its spec says, on top of what every container has.

Called when a container starts. Pure but for lookups in the registry's memory. In order, later ones win:

1. PATH, HOSTNAME, HOME, POD_IP and the image's own variables;
2. the variables of Services (`service_variables`), then `envFrom`, then `env`;
3. the markers by which the node proves a process to be its own, and PORT for a built-in image.

Nothing of the environment of `up` itself is handed down but PATH: the machine is the image.

Source: EnvVar and EnvFromSource (API reference).
"""

from collections.abc import Mapping
from typing import Any

from podscaler.controlplane.kubelet.volumes import expansion, references
from podscaler.controlplane.kubelet.volumes.references import ConfigFault, Find, PodPlacement


def environment(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlacement,
    *,
    find: Find,
    base: Mapping[str, str],
    services: Mapping[str, str],
) -> dict[str, str]:
    """The container's variables.

    Args:
        base: rule 1, already put together.
        services: what `service_variables` gave.

    Raises ConfigFault.
    """
    variables = {**base, **services}
    for source in container.get("envFrom") or []:
        variables |= _all_of(source, find, pod["metadata"]["namespace"])
    for entry in container.get("env") or []:
        value = _value(entry, pod, container, place, find=find, variables=variables)
        if value is not None:
            variables[entry["name"]] = value
    for name, value in variables.items():
        if "\0" in value or "\0" in name:
            raise ConfigFault(f"the environment variable {name!r} holds a NUL byte, which no process can be given")
    return variables


def _value(
    entry: Mapping[str, Any],
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlacement,
    *,
    find: Find,
    variables: Mapping[str, str],
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expansion.expanded(entry.get("value") or "", variables)
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        return references.field_value(pod, reference["fieldPath"], place)
    if reference := source.get("resourceFieldRef"):
        return references.resource_value(pod, reference, container["name"], place)
    if reference := source.get("configMapKeyRef"):
        return references.config_map_value(find, namespace, reference)
    if reference := source.get("secretKeyRef"):
        return references.secret_value(find, namespace, reference)
    raise ConfigFault(f"the source of the environment variable {entry['name']} is not supported: {', '.join(source)}")


def _all_of(source: Mapping[str, Any], find: Find, namespace: str) -> dict[str, str]:
    """The variables of one entry of envFrom."""
    prefix = source.get("prefix") or ""
    if reference := source.get("configMapRef"):
        found = _find_source("configmap", find, namespace, reference)
        return _usable({prefix + key: str(value) for key, value in (found.get("data") or {}).items()})
    reference = source.get("secretRef") or {}
    found = _find_source("secret", find, namespace, reference)
    return _usable(
        {
            prefix + key: references.decoded(value).decode("utf-8", "surrogateescape")
            for key, value in (found.get("data") or {}).items()
        }
    )


def _find_source(kind: str, find: Find, namespace: str, reference: Mapping[str, Any]) -> Mapping[str, Any]:
    name = reference.get("name", "")
    found = find(f"{kind}s", namespace, name)
    if found is None and not reference.get("optional"):
        raise ConfigFault(f'{kind} "{name}" not found')
    return found or {}


def _usable(variables: Mapping[str, str]) -> dict[str, str]:
    """Those whose names a process can have."""
    return {name: value for name, value in variables.items() if name and "=" not in name}
