"""The environment variables of a container, and $(NAME) references to them in commands, arguments and values.

`kubelet.pods.container_setup` calls `environment` at each start of a container, and `expand_references` for its
command. Pure, except for lookups in the registry's memory. Later variables win:

1. those of `container_setup` (PATH, HOSTNAME, HOME, POD_IP; PORT and LISTEN_ADDRESS for some images) and of the image;
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


def expand_references(template: str, variables: Mapping[str, str]) -> str:
    """`template` with each $(NAME) replaced by its value; unknown names are kept, and `$$` becomes `$`."""

    def replacement(match: re.Match[str]) -> str:
        reference, name = match.group(0), match.group(1)
        return "$" if name is None else variables.get(name, reference)

    return _REFERENCE.sub(replacement, template)


def environment(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    placement: PodPlacement,
    *,
    find: FindObject,
    base: Mapping[str, str],
    services: Mapping[str, str],
) -> dict[str, str]:
    """The container's variables (rules 1 and 2): name -> value.

    Args:
        container: a core/v1 Container of `pod`.
        find: finds the ConfigMaps and Secrets.
        base: the variables of rule 1.
        services: the result of `service_variables`.

    Raises ContainerConfigError.
    """
    variables = {**base, **services}
    for env_source in container.get("envFrom") or []:
        variables |= _env_source_variables(env_source, find, pod["metadata"]["namespace"])
    for env_var in container.get("env") or []:
        value = _env_var_value(env_var, pod, container, placement, find=find, variables=variables)
        if value is not None:
            variables[env_var["name"]] = value
    for name, value in variables.items():
        if "\0" in value or "\0" in name:
            raise ContainerConfigError(
                f"the environment variable {name!r} holds a NUL byte, which an environment cannot hold"
            )
    return variables


def _env_var_value(
    env_var: Mapping[str, Any],
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    placement: PodPlacement,
    *,
    find: FindObject,
    variables: Mapping[str, str],
) -> str | None:
    """The value of an entry of `env`; None if it is that of an optional key that is absent.

    Args:
        env_var: a core/v1 EnvVar. A new kind of `valueFrom`: a case here.
        variables: the variables before it, to which its `value` may refer.

    Raises ContainerConfigError.
    """
    source = env_var.get("valueFrom")
    if not source:
        return expand_references(env_var.get("value") or "", variables)
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        return references.field_value(pod, reference["fieldPath"], placement)
    if reference := source.get("resourceFieldRef"):
        return references.resource_value(pod, reference, container["name"], placement)
    if reference := source.get("configMapKeyRef"):
        return references.key_value("configmap", find, namespace, reference)
    if reference := source.get("secretKeyRef"):
        return references.key_value("secret", find, namespace, reference)
    raise ContainerConfigError(
        f"the source of the environment variable {env_var['name']} is not supported: {', '.join(source)}"
    )


def _env_source_variables(source: Mapping[str, Any], find: FindObject, namespace: str) -> dict[str, str]:
    """The variables of an entry of `envFrom`; keys that are not valid names of variables are left out.

    Args:
        source: a core/v1 EnvFromSource.

    Raises ContainerConfigError if the ConfigMap or Secret is absent and not optional.
    """
    kind: references.DataKind = "configmap" if source.get("configMapRef") else "secret"
    reference = source.get("configMapRef") or source.get("secretRef") or {}
    name, prefix = reference.get("name", ""), source.get("prefix") or ""
    text_by_key = references.text_data(kind, find, namespace, name)
    if text_by_key is None and not reference.get("optional"):
        raise ContainerConfigError(f'{kind} "{name}" not found')
    variables = {prefix + key: value for key, value in (text_by_key or {}).items()}
    return {variable: value for variable, value in variables.items() if variable and "=" not in variable}
