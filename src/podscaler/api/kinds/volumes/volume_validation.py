"""What is wrong with the volumes of a pod spec, and with mounts of them.

Called by `pod_validation` and `container_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.kinds.volumes import downward_validation, projected_volume_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from podscaler.api.resource.resources import Object

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def names_of(spec: Object) -> frozenset[str]:
    """The names of a pod spec's volumes."""
    return frozenset(volume.get("name", "") for volume in spec.get("volumes") or [])


def faults(volumes: list[Object], path: str, *, old: list[Object] | None = None) -> list[FieldError]:
    """What is wrong with the volumes at `path`.

    Args:
        volumes: those of a pod spec.
        path: their place.
        old: the stored ones; where a token among them has a wrong path, tokens' paths are not checked, as upstream
            does for what was stored before it checked them.
    """
    found = []
    seen: set[str] = set()
    trusts_token_paths = any(
        projected_volume_validation.has_wrong_token_path(volume.get("projected") or {}) for volume in old or []
    )
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        found += _source_faults(volume, place, trusts_token_paths=trusts_token_paths)
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
            continue
        found += [invalid(f"{place}.name", name, text) for text in names.dns_label_faults(name)]
        if name in seen:
            found.append(duplicate(f"{place}.name", name))
        seen.add(name)
    return found


def _source_faults(volume: Object, path: str, *, trusts_token_paths: bool) -> list[FieldError]:
    order = ("emptyDir", "hostPath")
    given = [name for name in volume if name != "name" and volume[name] is not None]
    sources = sorted(given, key=lambda name: order.index(name) if name in order else len(order))
    if not sources:
        return [required(path, "must specify a volume type")]
    kind, place = sources[0], f"{path}.{sources[0]}"
    found = _known_faults(kind, volume[kind], place)
    if kind == "projected":
        found += projected_volume_validation.faults(volume[kind], place, trusts_token_paths=trusts_token_paths)
    more = [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
    return found + more


def _known_faults(kind: str, source: Object, path: str) -> list[FieldError]:
    if kind in ("configMap", "secret"):
        name = "name" if kind == "configMap" else "secretName"
        found = [] if source.get(name) else [required(f"{path}.{name}")]
        found += _mode_faults(source, path)
        for index, item in enumerate(source.get("items") or []):
            found += volume_paths.key_faults(item, f"{path}.items[{index}]")
        return found
    if kind == "downwardAPI":
        found = _mode_faults(source, path)
        for item in source.get("items") or []:
            found += downward_validation.file_faults(item, path)
        return found
    if kind == "hostPath":
        return _host_path_faults(source, path)
    if kind == "persistentVolumeClaim":
        return [] if source.get("claimName") else [required(f"{path}.claimName")]
    return _mode_faults(source, path) if kind == "projected" else []


def _host_path_faults(source: Object, path: str) -> list[FieldError]:
    where, kind = source.get("path", ""), source.get("type", "")
    if not where:
        return [required(f"{path}.path")]
    found = volume_paths.backstep_faults(where, f"{path}.path")
    if kind not in _HOST_PATH_TYPES:
        found.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return found


def _mode_faults(source: Object, path: str) -> list[FieldError]:
    return volume_paths.mode_faults(source.get("defaultMode"), f"{path}.defaultMode")


def mount_faults(container: Object, path: str, volumes: frozenset[str]) -> list[FieldError]:
    """What is wrong with the mounts of a container, whose `volumeMounts` are at `path`."""
    found = []
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        place, where = f"{path}[{index}]", mount.get("mountPath", "")
        found += _mounted_name_faults(mount.get("name", ""), f"{place}.name", volumes)
        if not where:
            found.append(required(f"{place}.mountPath"))
        if where in seen:
            found.append(invalid(f"{place}.mountPath", where, "must be unique"))
        seen.add(where)
        found += _sub_path_faults(mount, path, place)
        found += _propagation_faults(mount.get("mountPropagation"), f"{path}.mountPropagation", container)
    return found


def _mounted_name_faults(name: str, path: str, volumes: frozenset[str]) -> list[FieldError]:
    if not name:
        return [required(path), not_found(path, name)]
    return [] if name in volumes else [not_found(path, name)]


def _sub_path_faults(mount: Object, path: str, place: str) -> list[FieldError]:
    """Those of `place`, one of the mounts at `path`; what upstream says of its paths has no index."""
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    found = volume_paths.relative_faults(part, f"{path}.subPath")
    if part and expression:
        found.append(invalid(f"{place}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"))
    return found + volume_paths.relative_faults(expression, f"{path}.subPathExpr")


def _propagation_faults(propagation: str | None, path: str, container: Object) -> list[FieldError]:
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [not_supported(path, propagation, _PROPAGATIONS)]
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def file_key_faults(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with the volumes that `fileKeyRef` of variables name, in the pod spec at `path`."""
    sources = {volume.get("name", ""): volume for volume in spec.get("volumes") or []}
    found = []
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            for at, variable in enumerate(container.get("env") or []):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is not None:
                    place = f"{path}.{group}[{index}].env[{at}].valueFrom.fileKeyRef.volumeName"
                    found += _env_volume_faults(reference.get("volumeName", ""), sources, place)
    return found


def _env_volume_faults(name: str, sources: dict[str, Object], path: str) -> list[FieldError]:
    if name not in sources:
        return [not_found(path, name)]
    if sources[name].get("emptyDir") is None:
        return [invalid(path, name, "referenced volume must be of type emptyDir")]
    return []
