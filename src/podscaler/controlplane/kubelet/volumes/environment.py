"""The environment variables of a container, and $(NAME) references to them in commands, arguments and values.

`container_setup` calls `environment` at each start of a container. Pure, except for lookups in the registry's memory.
Later variables win:

1. PATH, HOSTNAME, HOME, POD_IP, PORT and LISTEN_ADDRESS for a built-in image, and the image's own variables;
2. the variables of Services (`service_variables`), then `envFrom`, then `env`;
3. the marks of processes (`process_identity`), which `container_setup` adds.

Containers inherit only PATH from the environment of `up`.

Source: EnvVar and EnvFromSource (API reference); "Define Dependent Environment Variables", "Define a Command and
Arguments for a Container" (Kubernetes documentation).
"""

import re
from collections.abc import Mapping
from typing import Any

from podscaler.controlplane.kubelet.volumes import references
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, FindObject, PodPlacement

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each $(NAME) replaced by its value; unknown names are kept, and `$$` becomes `$`."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group(0))

    return _REFERENCE.sub(replacement, text)


def environment(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlacement,
    *,
    find: FindObject,
    base: Mapping[str, str],
    services: Mapping[str, str],
) -> dict[str, str]:
    """The container's variables.

    Args:
        base: the variables of rule 1.
        services: the result of `service_variables`.

    Raises ContainerConfigError.
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
            raise ContainerConfigError(
                f"the environment variable {name!r} holds a NUL byte, which an environment cannot hold"
            )
    return variables


def _value(
    entry: Mapping[str, Any],
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlacement,
    *,
    find: FindObject,
    variables: Mapping[str, str],
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expanded(entry.get("value") or "", variables)
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        return references.field_value(pod, reference["fieldPath"], place)
    if reference := source.get("resourceFieldRef"):
        return references.resource_value(pod, reference, container["name"], place)
    if reference := source.get("configMapKeyRef"):
        return references.key_value("configmap", find, namespace, reference)
    if reference := source.get("secretKeyRef"):
        return references.key_value("secret", find, namespace, reference)
    raise ContainerConfigError(
        f"the source of the environment variable {entry['name']} is not supported: {', '.join(source)}"
    )


def _all_of(source: Mapping[str, Any], find: FindObject, namespace: str) -> dict[str, str]:
    """The variables of one entry of envFrom; keys that are not valid names of variables are left out."""
    kind: references.DataKind = "configmap" if source.get("configMapRef") else "secret"
    reference = source.get("configMapRef") or source.get("secretRef") or {}
    name, prefix = reference.get("name", ""), source.get("prefix") or ""
    data = references.text_data(kind, find, namespace, name)
    if data is None and not reference.get("optional"):
        raise ContainerConfigError(f'{kind} "{name}" not found')
    variables = {prefix + key: value for key, value in (data or {}).items()}
    return {name: value for name, value in variables.items() if name and "=" not in name}
