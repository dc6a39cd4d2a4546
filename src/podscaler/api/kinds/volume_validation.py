"""What is wrong with the volumes of a pod spec, and with mounts of them.

Called by `pod_validation` and `container_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

from collections.abc import Mapping

from podscaler.api import names
from podscaler.api.field import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from podscaler.api.kinds import config_key
from podscaler.api.resources import Object

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def names_of(spec: Object) -> frozenset[str]:
    """The names of a pod spec's volumes."""
    return frozenset(volume.get("name", "") for volume in spec.get("volumes") or [])


def faults(volumes: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the volumes at `path`."""
    found = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        found += _source_faults(volume, place)
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
            continue
        found += [invalid(f"{place}.name", name, text) for text in names.dns_label_faults(name)]
        if name in seen:
            found.append(duplicate(f"{place}.name", name))
        seen.add(name)
    return found


def _source_faults(volume: Object, path: str) -> list[FieldError]:
    order = ("emptyDir", "hostPath")
    given = [name for name in volume if name != "name" and volume[name] is not None]
    sources = sorted(given, key=lambda name: order.index(name) if name in order else len(order))
    if not sources:
        return [required(path, "must specify a volume type")]
    found = _known_faults(sources[0], volume[sources[0]], f"{path}.{sources[0]}")
    more = [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
    return found + more


def _known_faults(kind: str, source: Object, path: str) -> list[FieldError]:
    if kind == "configMap":
        found = [] if source.get("name") else [required(f"{path}.name")]
        return found + _mode_faults(source, path) + _item_faults(source.get("items") or [], f"{path}.items")
    if kind == "secret":
        found = [] if source.get("secretName") else [required(f"{path}.secretName")]
        return found + _mode_faults(source, path) + _item_faults(source.get("items") or [], f"{path}.items")
    if kind == "hostPath":
        return _host_path_faults(source, path)
    if kind == "persistentVolumeClaim":
        return [] if source.get("claimName") else [required(f"{path}.claimName")]
    return _mode_faults(source, path) if kind in ("downwardAPI", "projected") else []


def _host_path_faults(source: Object, path: str) -> list[FieldError]:
    where, kind = source.get("path", ""), source.get("type", "")
    if not where:
        return [required(f"{path}.path")]
    found = [invalid(f"{path}.path", where, "must not contain '..'")] if ".." in where.split("/") else []
    if kind not in _HOST_PATH_TYPES:
        found.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return found


def _mode_faults(source: Object, path: str) -> list[FieldError]:
    mode = source.get("defaultMode")
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(f"{path}.defaultMode", mode, _MODE)]


def _item_faults(items: list[Object], path: str) -> list[FieldError]:
    found = []
    for index, item in enumerate(items):
        place, key, where = f"{path}[{index}]", item.get("key", ""), item.get("path", "")
        if not key:
            found.append(required(f"{place}.key"))
        else:
            found += [invalid(f"{place}.key", key, text) for text in config_key.faults(key)]
        found += relative_faults(where, f"{place}.path") if where else [required(f"{place}.path")]
        mode = item.get("mode")
        if mode is not None and not 0 <= mode <= 0o777:
            found.append(invalid(f"{place}.mode", mode, _MODE))
    return found


def relative_faults(where: str, path: str) -> list[FieldError]:
    """What is wrong with a path inside a volume: absolute, or leading out of it."""
    if where.startswith("/"):
        return [invalid(path, where, "must be a relative path")]
    return [invalid(path, where, "must not contain '..'")] if ".." in where.split("/") else []


def mount_faults(mounts: list[Object], path: str, volumes: frozenset[str]) -> list[FieldError]:
    """What is wrong with the mounts of a container, at `path`."""
    found = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        place, where = f"{path}[{index}]", mount.get("mountPath", "")
        found += _mounted_name_faults(mount.get("name", ""), f"{place}.name", volumes)
        if not where:
            found.append(required(f"{place}.mountPath"))
        if where in seen:
            found.append(invalid(f"{place}.mountPath", where, "must be unique"))
        seen.add(where)
        found += _mount_detail_faults(mount, place)
    return found


def _mounted_name_faults(name: str, path: str, volumes: frozenset[str]) -> list[FieldError]:
    if not name:
        return [required(path), not_found(path, name)]
    return [] if name in volumes else [not_found(path, name)]


def _mount_detail_faults(mount: Mapping[str, str], path: str) -> list[FieldError]:
    found = []
    if mount.get("subPath") and mount.get("subPathExpr"):
        found.append(
            invalid(f"{path}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
        )
    for name in ("subPath", "subPathExpr"):
        if mount.get(name):
            found += relative_faults(mount[name], f"{path}.{name}")
    propagation = mount.get("mountPropagation")
    if propagation is not None and propagation not in _PROPAGATIONS:
        found.append(not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
    return found
