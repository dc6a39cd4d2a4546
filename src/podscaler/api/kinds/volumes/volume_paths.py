"""Rules for paths inside volumes, which must not lead out of them.

Called by the validation of volumes, mounts and variables.

Source: upstream's validation of core/v1 KeyToPath, VolumeMount and FileKeySelector.
"""

from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource.resources import Object

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def file_errors(where: str, path: str) -> list[FieldError]:
    """What is wrong with the path of a file in a volume: absolute, leading out of it, or a name that nodes reserve."""
    found = relative_errors(where, path)
    if where.startswith("..") and not where.startswith("../"):
        found.append(invalid(path, where, "must not start with '..'"))
    return found


def relative_errors(where: str, path: str) -> list[FieldError]:
    """What is wrong with a path that is looked up in a volume: absolute, or leading out of it."""
    found = [invalid(path, where, "must be a relative path")] if where.startswith("/") else []
    return found + backstep_errors(where, path)


def backstep_errors(where: str, path: str) -> list[FieldError]:
    """What is wrong with a path in which no part may be `..`."""
    return [invalid(path, where, "must not contain '..'")] if ".." in where.split("/") else []


def mode_errors(mode: int | None, path: str) -> list[FieldError]:
    """What is wrong with the permissions of a file."""
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, _MODE)]


def key_errors(item: Object, path: str) -> list[FieldError]:
    """What is wrong with a KeyToPath."""
    found = [required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    found += file_errors(item.get("path", ""), f"{path}.path")
    return found + mode_errors(item.get("mode"), f"{path}.mode")
