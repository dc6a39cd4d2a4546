"""Validates paths of files and directories inside volumes, which must not lead out of the volume (`../x`).

Called by the validation of volumes, mounts and variables. `where` is the path in the volume, `path` that of the field.

Source: kube-apiserver's validation of core/v1 KeyToPath, VolumeMount and FileKeySelector.
"""

from podscaler.api.machinery.field import FieldError, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def file_errors(file_path: str, path: str) -> list[FieldError]:
    """The field errors of the path of a file in a volume: absolute, leading out of it, or a name that nodes reserve."""
    is_reserved = file_path.startswith("..") and not file_path.startswith("../")
    return relative_errors(file_path, path) + checks.holds(not is_reserved, path, file_path, "must not start with '..'")


def relative_errors(file_path: str, path: str) -> list[FieldError]:
    """The field errors of a path below the root of a volume: absolute, or leading out of it."""
    is_relative = not file_path.startswith("/")
    return checks.holds(is_relative, path, file_path, "must be a relative path") + backstep_errors(file_path, path)


def backstep_errors(file_path: str, path: str) -> list[FieldError]:
    """The field errors of a path in which no part may be `..`."""
    return checks.holds(".." not in file_path.split("/"), path, file_path, "must not contain '..'")


def mode_errors(mode: int | None, path: str) -> list[FieldError]:
    """The field errors of the permissions of a file."""
    return checks.holds(mode is None or 0 <= mode <= 0o777, path, mode, _MODE)


def key_errors(item: Object, path: str) -> list[FieldError]:
    """The field errors of a KeyToPath."""
    errors = [required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    errors += file_errors(item.get("path", ""), f"{path}.path")
    return errors + mode_errors(item.get("mode"), f"{path}.mode")
