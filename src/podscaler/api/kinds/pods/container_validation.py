"""What is wrong with the containers of a pod spec.

Called by `pod_validation`.

Source: upstream's messages (golden captures; the API reference of core/v1).
"""

from podscaler.api.kinds.pods import env_validation, probe_validation, resource_validation, security_context_validation
from podscaler.api.kinds.volumes import volume_validation
from podscaler.api.machinery import names, ports
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource.resources import Object

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")


def faults(spec: Object, path: str, volumes: frozenset[str]) -> list[FieldError]:
    """What is wrong with containers and init containers of the pod spec at `path`."""
    listed, init = spec.get("containers") or [], spec.get("initContainers") or []
    if not listed:
        return [required(f"{path}.containers")]
    found = []
    seen: set[str] = set()
    for index, container in enumerate(listed):
        place = f"{path}.containers[{index}]"
        found += _container_faults(container, place, volumes, seen)
        found += _lifecycle_faults(container, place)
    found += _host_port_faults(listed, f"{path}.containers")
    found += _security_faults(spec, path)
    for index, container in enumerate(init):
        found += _init_faults(container, f"{path}.initContainers[{index}]", volumes, seen)
    return found


def _security_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group) or []):
            found += security_context_validation.container_faults(
                container, f"{path}.{group}[{index}]", has_host_users=spec.get("hostUsers") is not False
            )
    return found


def _container_faults(container: Object, path: str, volumes: frozenset[str], seen: set[str]) -> list[FieldError]:
    found = _name_faults(container.get("name", ""), path, seen)
    found += _image_faults(container.get("image", ""), f"{path}.image")
    found += _choice_faults(container, "terminationMessagePolicy", path, _MESSAGE_POLICIES)
    found += _port_faults(container.get("ports") or [], f"{path}.ports")
    found += env_validation.faults(container.get("env") or [], f"{path}.env")
    found += env_validation.from_faults(container.get("envFrom") or [], f"{path}.envFrom")
    found += volume_validation.mount_faults(container, f"{path}.volumeMounts", volumes)
    found += _choice_faults(container, "imagePullPolicy", path, _PULL_POLICIES)
    return found + resource_validation.faults(container.get("resources") or {}, f"{path}.resources")


def _name_faults(name: str, path: str, seen: set[str]) -> list[FieldError]:
    if not name:
        return [required(f"{path}.name")]
    found = [invalid(f"{path}.name", name, text) for text in names.dns_label_faults(name)]
    if name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    return found


def _image_faults(image: str, path: str) -> list[FieldError]:
    if not image:
        return [required(path)]
    return [] if image == image.strip() else [invalid(path, image, "must not have leading or trailing whitespace")]


def _choice_faults(container: Object, name: str, path: str, choices: tuple[str, ...]) -> list[FieldError]:
    value = container.get(name, "")
    if not value:
        return [required(f"{path}.{name}")]
    return [] if value in choices else [not_supported(f"{path}.{name}", value, choices)]


def _lifecycle_faults(container: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("postStart", "preStop"):
        if (handler := (container.get("lifecycle") or {}).get(name)) is not None:
            found += probe_validation.handler_faults(handler, f"{path}.lifecycle.{name}")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            found += probe_validation.faults(probe, f"{path}.{name}")
    return found


def _init_faults(container: Object, path: str, volumes: frozenset[str], seen: set[str]) -> list[FieldError]:
    found = _container_faults(container, path, volumes, seen)
    policy = container.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        found.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if policy == "Always":
        return found + _lifecycle_faults(container, path)
    text = "may not be set for init containers without restartPolicy=Always"
    refused = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    return found + [forbidden(f"{path}.{name}", text) for name in refused if container.get(name) is not None]


def _port_faults(listed: list[Object], path: str) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for index, port in enumerate(listed):
        place, name, number = f"{path}[{index}]", port.get("name", ""), port.get("containerPort", 0)
        if name:
            texts = ports.name_texts(name)
            found += [invalid(f"{place}.name", name, text) for text in texts]
            if not texts and name in seen:
                found.append(duplicate(f"{place}.name", name))
            seen.add(name)
        found += (
            ports.number_faults(number, f"{place}.containerPort") if number else [required(f"{place}.containerPort")]
        )
        if port.get("hostPort"):
            found += ports.number_faults(port["hostPort"], f"{place}.hostPort")
        found += ports.protocol_faults(port.get("protocol", ""), f"{place}.protocol")
    return found


def _host_port_faults(containers: list[Object], path: str) -> list[FieldError]:
    """Two containers of a pod cannot have the same port of the host."""
    found = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or []):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                found.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", key))
            seen.add(key)
    return found
