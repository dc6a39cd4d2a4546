"""Validates paths of files and directories inside volumes, which must not lead out of the volume (`../x`).

Called by the other modules of this package and by `api.kinds.pods.env_validation`. `file_path` is the path in the
volume, `field_path` the path of the field that contains it (`spec.volumes[0].configMap.items[0].path`). The permissions
of such files are here, too.

Source: kube-apiserver's validation of core/v1 KeyToPath, VolumeMount and FileKeySelector.
"""

from podscaler.api.machinery.field import FieldError, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_MODE_MESSAGE = "must be a number between 0 and 0777 (octal), both inclusive"


def file_errors(file_path: str, field_path: str) -> list[FieldError]:
    """Errors if the path is absolute, leads out of the volume, or begins with `..`, as the kubelet's own `..data`."""
    is_reserved = file_path.startswith("..") and not file_path.startswith("../")
    errors = relative_errors(file_path, field_path)
    return errors + checks.holds(not is_reserved, field_path, file_path, "must not start with '..'")


def relative_errors(file_path: str, field_path: str) -> list[FieldError]:
    """Errors if the path is absolute, or leads out of the volume."""
    is_relative = not file_path.startswith("/")
    errors = checks.holds(is_relative, field_path, file_path, "must be a relative path")
    return errors + backstep_errors(file_path, field_path)


def backstep_errors(file_path: str, field_path: str) -> list[FieldError]:
    """Errors if a part of the path, which may be absolute, is `..`."""
    return checks.holds(".." not in file_path.split("/"), field_path, file_path, "must not contain '..'")


def mode_errors(mode: int | None, field_path: str) -> list[FieldError]:
    """Errors of permissions that are not between 0 and 0777; None is valid: the default of the volume."""
    return checks.holds(mode is None or 0 <= mode <= 0o777, field_path, mode, _MODE_MESSAGE)


def key_to_path_errors(key_to_path: Object, field_path: str) -> list[FieldError]:
    """The field errors of a KeyToPath: a key of a ConfigMap or Secret, and the file that its value becomes."""
    errors = [required(f"{field_path}.{name}") for name in ("key", "path") if not key_to_path.get(name)]
    errors += file_errors(key_to_path.get("path", ""), f"{field_path}.path")
    return errors + mode_errors(key_to_path.get("mode"), f"{field_path}.mode")
