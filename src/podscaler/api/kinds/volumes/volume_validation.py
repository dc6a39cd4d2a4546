"""Validates the volumes of a pod spec, the mounts of its containers, and references to volumes in variables.

Called by the validation of pods and containers. A new volume type: add it to `_source_type_errors`.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

from podscaler.api.kinds.volumes import downward_validation, projected_volume_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, not_found, not_supported, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def names_of(spec: Object) -> frozenset[str]:
    """The names of a pod spec's volumes."""
    return frozenset(volume.get("name", "") for volume in spec.get("volumes") or [])


def validate(volumes: list[Object], path: str, *, old: list[Object] | None = None) -> list[FieldError]:
    """The field errors of volumes.

    Args:
        volumes: the volumes of a pod spec.
        path: the path of the list.
        old: the stored volumes, None on create. If a service account token among them has an invalid path, the paths
            of tokens are not checked, since the object may be older than that check.
    """
    is_invalid = projected_volume_validation.has_invalid_token_path
    trusts_token_paths = any(is_invalid(volume.get("projected") or {}) for volume in old or [])
    seen: set[str] = set()
    errors = []
    for index, volume in enumerate(volumes):
        item_path, name = f"{path}[{index}]", volume.get("name", "")
        errors += _source_errors(volume, item_path, trusts_token_paths=trusts_token_paths)
        errors += checks.required_form(name, f"{item_path}.name", names.dns_label_errors)
        errors += checks.not_repeated(name, f"{item_path}.name", seen) if name else []
    return errors


def _source_errors(volume: Object, path: str, *, trusts_token_paths: bool) -> list[FieldError]:
    """The errors of a volume's source. If there are several, all but one are forbidden, and that one is checked."""
    order = ("emptyDir", "hostPath")
    source_kinds = [name for name in volume if name != "name" and volume[name] is not None]
    sources = sorted(source_kinds, key=lambda name: order.index(name) if name in order else len(order))
    if not sources:
        return [required(path, "must specify a volume type")]
    source_type, field_path = sources[0], f"{path}.{sources[0]}"
    errors = _source_type_errors(source_type, volume[source_type], field_path)
    if source_type == "projected":
        errors += projected_volume_validation.validate(
            volume[source_type], field_path, trusts_token_paths=trusts_token_paths
        )
    more = [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
    return errors + more


def _source_type_errors(source_type: str, source: Object, path: str) -> list[FieldError]:
    """The errors of one source, whose type is the name of its field; types that are not listed have no rule here."""
    if source_type in ("configMap", "secret"):
        name = "name" if source_type == "configMap" else "secretName"
        errors = [] if source.get(name) else [required(f"{path}.{name}")]
        errors += _mode_errors(source, path)
        errors += checks.each(source.get("items"), f"{path}.items", volume_paths.key_to_path_errors)
        return errors
    if source_type == "downwardAPI":
        errors = _mode_errors(source, path)
        for item in source.get("items") or []:
            errors += downward_validation.file_errors(item, path)
        return errors
    if source_type == "hostPath":
        return host_path_errors(source, path)
    if source_type == "persistentVolumeClaim":
        return checks.present(source.get("claimName"), f"{path}.claimName")
    return _mode_errors(source, path) if source_type == "projected" else []


def host_path_errors(source: Object, path: str) -> list[FieldError]:
    """The field errors of the hostPath at `path`."""
    host_path, host_path_type = source.get("path", ""), source.get("type", "")
    if not host_path:
        return [required(f"{path}.path")]
    errors = volume_paths.backstep_errors(host_path, f"{path}.path")
    return errors + checks.one_of(host_path_type, f"{path}.type", _HOST_PATH_TYPES)


def _mode_errors(source: Object, path: str) -> list[FieldError]:
    return volume_paths.mode_errors(source.get("defaultMode"), f"{path}.defaultMode")


def mount_errors(container: Object, path: str, volumes: frozenset[str]) -> list[FieldError]:
    """The field errors of the mounts of a container, whose `volumeMounts` are at `path`."""
    errors = []
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        item_path, name, mount_path = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        errors += checks.present(name, f"{item_path}.name")
        errors += [] if name and name in volumes else [not_found(f"{item_path}.name", name)]
        errors += checks.present(mount_path, f"{item_path}.mountPath")
        errors += checks.holds(mount_path not in seen, f"{item_path}.mountPath", mount_path, "must be unique")
        seen.add(mount_path)
        errors += _sub_path_errors(mount, path, item_path)
        errors += _propagation_errors(mount.get("mountPropagation"), f"{path}.mountPropagation", container)
    return errors


def _sub_path_errors(mount: Object, path: str, mount_field: str) -> list[FieldError]:
    """The errors of the sub-paths of the mount at `mount_field`; most name the list at `path`, without an index."""
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    errors = volume_paths.relative_errors(sub_path, f"{path}.subPath")
    errors += checks.holds(
        not (sub_path and expression),
        f"{mount_field}.subPathExpr",
        expression,
        "subPathExpr and subPath are mutually exclusive",
    )
    return errors + volume_paths.relative_errors(expression, f"{path}.subPathExpr")


def _propagation_errors(propagation: str | None, path: str, container: Object) -> list[FieldError]:
    """Errors of the mount propagation; Bidirectional is for privileged containers only."""
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [not_supported(path, propagation, _PROPAGATIONS)]
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def file_key_errors(spec: Object, path: str) -> list[FieldError]:
    """The field errors of the volumes that `fileKeyRef` of variables name, in the pod spec at `path`."""
    sources = {volume.get("name", ""): volume for volume in spec.get("volumes") or []}
    errors = []
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            for env_index, variable in enumerate(container.get("env") or []):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is not None:
                    field_path = f"{path}.{group}[{index}].env[{env_index}].valueFrom.fileKeyRef.volumeName"
                    errors += _env_volume_errors(reference.get("volumeName", ""), sources, field_path)
    return errors


def _env_volume_errors(name: str, sources: dict[str, Object], path: str) -> list[FieldError]:
    if name not in sources:
        return [not_found(path, name)]
    is_directory = sources[name].get("emptyDir") is not None
    return checks.holds(is_directory, path, name, "referenced volume must be of type emptyDir")
