"""Validates the volumes of a pod spec, the mounts of its containers, and references to volumes in variables.

Called by `api.kinds.pods.pod_validation` and `container_validation`; `persistentvolume` uses `host_path_errors`. The
check of a further volume type: add it to `_source_type_errors`. An `Object` is the part of an API object that the name
of the argument says, as a JSON object; `path` is its path in errors.

Source: kube-apiserver's messages; the API reference of core/v1.
Differs: of volume types that `_source_type_errors` does not name, such as emptyDir and csi, no fields are checked.
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


def validate(volumes: list[Object], path: str, *, old_volumes: list[Object] | None = None) -> list[FieldError]:
    """The field errors of the volumes of a pod spec.

    Args:
        old_volumes: the stored volumes, None on create. If a service account token among them has an invalid path, the
            paths of tokens are not checked, since the object may be older than that check.
    """
    old_sources = [volume.get("projected") or {} for volume in old_volumes or []]
    trusts_token_paths = any(map(projected_volume_validation.has_invalid_token_path, old_sources))
    earlier_names: set[str] = set()
    errors = []
    for index, volume in enumerate(volumes):
        item_path, name = f"{path}[{index}]", volume.get("name", "")
        errors += _source_errors(volume, item_path, trusts_token_paths=trusts_token_paths)
        errors += checks.required_form(name, f"{item_path}.name", names.dns_label_errors)
        errors += checks.not_repeated(name, f"{item_path}.name", earlier_names) if name else []
    return errors


def _source_errors(volume: Object, path: str, *, trusts_token_paths: bool) -> list[FieldError]:
    """Field errors of the source of a volume.

    Of several sources the first one (emptyDir and hostPath before the others) is validated, the others are forbidden.
    """
    set_types = [name for name in volume if name != "name" and volume[name] is not None]
    first_types = [name for name in ("emptyDir", "hostPath") if name in set_types]
    source_types = first_types + [name for name in set_types if name not in first_types]
    if not source_types:
        return [required(path, "must specify a volume type")]
    first_type, *other_types = source_types
    first_path = f"{path}.{first_type}"
    errors = _source_type_errors(first_type, volume[first_type], first_path, trusts_token_paths=trusts_token_paths)
    message = "may not specify more than 1 volume type"
    return errors + [forbidden(f"{path}.{name}", message) for name in other_types]


def _source_type_errors(source_type: str, source: Object, path: str, *, trusts_token_paths: bool) -> list[FieldError]:
    """Field errors of one source; `source_type` is the field of the volume that has it."""
    match source_type:
        case "configMap":
            return _config_errors(source, path, name_field="name")
        case "secret":
            return _config_errors(source, path, name_field="secretName")
        case "downwardAPI":
            errors = _default_mode_errors(source, path)
            for file in source.get("items") or []:
                errors += downward_validation.file_errors(file, path)
            return errors
        case "hostPath":
            return host_path_errors(source, path)
        case "persistentVolumeClaim":
            return checks.present(source.get("claimName"), f"{path}.claimName")
        case "projected":
            errors = _default_mode_errors(source, path)
            return errors + projected_volume_validation.validate(source, path, trusts_token_paths=trusts_token_paths)
        case _:
            return []


def _config_errors(source: Object, path: str, *, name_field: str) -> list[FieldError]:
    """Field errors of a ConfigMap or Secret as a volume; `name_field` is the field with its name."""
    errors = checks.present(source.get(name_field), f"{path}.{name_field}") + _default_mode_errors(source, path)
    return errors + checks.each(source.get("items"), f"{path}.items", volume_paths.key_to_path_errors)


def host_path_errors(source: Object, path: str) -> list[FieldError]:
    """The field errors of the hostPath at `path`."""
    host_path, host_path_type = source.get("path", ""), source.get("type", "")
    if not host_path:
        return [required(f"{path}.path")]
    errors = volume_paths.backstep_errors(host_path, f"{path}.path")
    return errors + checks.one_of(host_path_type, f"{path}.type", _HOST_PATH_TYPES)


def _default_mode_errors(source: Object, path: str) -> list[FieldError]:
    return volume_paths.mode_errors(source.get("defaultMode"), f"{path}.defaultMode")


def mount_errors(container: Object, path: str, volume_names: frozenset[str]) -> list[FieldError]:
    """The field errors of the `volumeMounts` (at `path`) of a container; `volume_names` has the volumes of the pod."""
    errors = []
    earlier_mount_paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        item_path, name, mount_path = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        errors += checks.present(name, f"{item_path}.name")
        errors += [] if name and name in volume_names else [not_found(f"{item_path}.name", name)]
        errors += checks.present(mount_path, f"{item_path}.mountPath")
        errors += checks.holds(
            mount_path not in earlier_mount_paths, f"{item_path}.mountPath", mount_path, "must be unique"
        )
        earlier_mount_paths.add(mount_path)
        errors += _sub_path_errors(mount, path, item_path)
        errors += _propagation_errors(mount.get("mountPropagation"), f"{path}.mountPropagation", container)
    return errors


def _sub_path_errors(mount: Object, mounts_path: str, item_path: str) -> list[FieldError]:
    """Field errors of the sub-paths of a mount.

    Args:
        mounts_path: the path of the list of mounts, at which kube-apiserver reports most errors, without an index.
        item_path: the path of the mount.
    """
    sub_path, sub_path_expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    errors = volume_paths.relative_errors(sub_path, f"{mounts_path}.subPath")
    errors += checks.holds(
        not (sub_path and sub_path_expression),
        f"{item_path}.subPathExpr",
        sub_path_expression,
        "subPathExpr and subPath are mutually exclusive",
    )
    return errors + volume_paths.relative_errors(sub_path_expression, f"{mounts_path}.subPathExpr")


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
    volumes_by_name = {volume.get("name", ""): volume for volume in spec.get("volumes") or []}
    errors = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            for env_index, variable in enumerate(container.get("env") or []):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is not None:
                    field_path = f"{path}.{field}[{index}].env[{env_index}].valueFrom.fileKeyRef.volumeName"
                    errors += _file_key_volume_errors(reference.get("volumeName", ""), volumes_by_name, field_path)
    return errors


def _file_key_volume_errors(name: str, volumes_by_name: dict[str, Object], path: str) -> list[FieldError]:
    """The error of a volume, named by a variable, that is missing or no emptyDir."""
    if name not in volumes_by_name:
        return [not_found(path, name)]
    is_directory = volumes_by_name[name].get("emptyDir") is not None
    return checks.holds(is_directory, path, name, "referenced volume must be of type emptyDir")
