"""The files of configMap, secret, downwardAPI and projected volumes, as data, and putting them into a volume.

`volumes` and `token_renewal` call it. All but `write` and `status` is pure but for lookups in the registry's memory.
What is missing is a ConfigFault.

Source: Volumes, Projected Volumes (Kubernetes documentation).
Differs: PVCs, CSI and network file systems are refused.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.launching import beneath
from podscaler.controlplane.kubelet.volumes import references
from podscaler.controlplane.kubelet.volumes.references import ConfigFault, Find, PodPlacement

DEFAULT_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
DRAFT_NAME_CHARACTERS: Final = 60
"""Of the name in that of the file that replaces it: names may have 255 bytes, and a character up to 4."""
TOKEN_LIFE_S: Final = 3600
MOUNT_REASON: Final = "ContainerCreating"
"""Upstream leaves the containers of a pod whose volumes are not there in this state; the event says the rest."""


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file: its path within the volume, content and permissions."""

    path: str
    data: bytes
    mode: int


IssueToken = Callable[[Mapping[str, Any], str, int], str]
"""A token of a pod's service account, for an audience (empty: the API server) and so many seconds.

Raises StatusError for an account that is not there.
"""


def files(
    volume: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement, find: Find, issue: IssueToken | None = None
) -> list[VolumeFile]:
    """The files of a volume that is made of objects. Raises ConfigFault."""
    makers: dict[str, Callable[[Mapping[str, Any]], list[VolumeFile]]] = {
        "configMap": lambda source: _config_map(source, source.get("name", ""), pod, find),
        "secret": lambda source: _secret(source, source.get("secretName", ""), pod, find),
        "downwardAPI": lambda source: _downward(source, pod, place),
        "projected": lambda source: _projected(source, pod, place, find, issue),
    }
    for kind, make in makers.items():
        if (source := volume.get(kind)) is not None:
            return make(source)
    kinds = ", ".join(sorted(set(volume) - {"name"}))
    raise _fault(f'volume "{volume["name"]}" is of a kind that this node does not have: {kinds}')


def token_file(source: Mapping[str, Any], pod: Mapping[str, Any], issue: IssueToken, mode: int) -> VolumeFile:
    """The file of a serviceAccountToken source, with a new token. Raises ConfigFault."""
    life_s = source.get("expirationSeconds") or TOKEN_LIFE_S
    try:
        token = issue(pod, source.get("audience") or "", life_s)
    except StatusError as error:
        raise _fault(f"failed to fetch token: {error.message}") from error
    return VolumeFile(source["path"], token.encode(), mode)


def _projected(
    source: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement, find: Find, issue: IssueToken | None
) -> list[VolumeFile]:
    found: list[VolumeFile] = []
    for entry in source.get("sources") or []:
        mode = {"defaultMode": source.get("defaultMode")}
        if (part := entry.get("configMap")) is not None:
            found += _config_map(mode | part, part.get("name", ""), pod, find)
        elif (part := entry.get("secret")) is not None:
            found += _secret(mode | part, part.get("name", ""), pod, find)
        elif (part := entry.get("downwardAPI")) is not None:
            found += _downward(mode | part, pod, place)
        elif (part := entry.get("serviceAccountToken")) is not None and issue is not None:
            found.append(token_file(part, pod, issue, _mode(source.get("defaultMode"), DEFAULT_MODE)))
        else:
            raise _fault(f"this node cannot project {', '.join(entry)}")
    return found


def _config_map(source: Mapping[str, Any], name: str, pod: Mapping[str, Any], find: Find) -> list[VolumeFile]:
    found = find("configmaps", pod["metadata"]["namespace"], name)
    if found is None:
        return _nothing_if_optional(source, f'configmap "{name}" not found')
    content = {key: str(value).encode() for key, value in (found.get("data") or {}).items()}
    content |= {key: references.decoded(value) for key, value in (found.get("binaryData") or {}).items()}
    return _selected(source, content, f"ConfigMap {name}")


def _secret(source: Mapping[str, Any], name: str, pod: Mapping[str, Any], find: Find) -> list[VolumeFile]:
    found = find("secrets", pod["metadata"]["namespace"], name)
    if found is None:
        return _nothing_if_optional(source, f'secret "{name}" not found')
    content = {key: references.decoded(value) for key, value in (found.get("data") or {}).items()}
    return _selected(source, content, f"Secret {name}")


def _selected(source: Mapping[str, Any], content: Mapping[str, bytes], origin: str) -> list[VolumeFile]:
    mode = _mode(source.get("defaultMode"), DEFAULT_MODE)
    if not source.get("items"):
        return [VolumeFile(key, content[key], mode) for key in sorted(content)]
    chosen = []
    for item in source["items"]:
        if item["key"] in content:
            chosen.append(VolumeFile(item["path"], content[item["key"]], _mode(item.get("mode"), mode)))
        elif not source.get("optional"):
            raise _fault(f"references non-existent config key: {item['key']} ({origin})")
    return chosen


def _downward(source: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement) -> list[VolumeFile]:
    mode = _mode(source.get("defaultMode"), DEFAULT_MODE)
    return [
        VolumeFile(item["path"], _downward_text(item, pod, place).encode(), _mode(item.get("mode"), mode))
        for item in source.get("items") or []
    ]


def _downward_text(item: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement) -> str:
    try:
        if reference := item.get("fieldRef"):
            return references.field_value(pod, reference["fieldPath"], place)
        return references.resource_value(pod, item.get("resourceFieldRef") or {}, "", place)
    except ConfigFault as fault:
        raise _fault(fault.message) from fault


def _mode(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _nothing_if_optional(source: Mapping[str, Any], message: str) -> list[VolumeFile]:
    if source.get("optional"):
        return []
    raise _fault(message)


def _fault(message: str) -> ConfigFault:
    return ConfigFault(message, reason=MOUNT_REASON)


def safe_path(path: str) -> str:
    """`path` within a volume. Raises ConfigFault for one that would lead out of it, or that no file can have."""
    parts: Iterable[str] = path.split("/")
    if path.startswith("/") or ".." in parts or not path or "\0" in path:
        raise _fault(f'"{path}" is no path within a volume')
    return path


def write(folder: Path, file: VolumeFile, *, group: int | None) -> None:
    """Put `file` into the volume at `folder`, as a whole: readers see the former file or this one.

    No symbolic link that leads out of the volume is followed. Blocks.

    Args:
        group: owns the file and may read it; None for the group of `up`.

    Raises ConfigFault, OSError.
    """
    above, _, name = safe_path(file.path).rpartition("/")
    if name in ("", "."):
        raise _fault(f'"{file.path}" is no path of a file')
    with _opened(folder, above) as parent:
        draft = f"..{name[:DRAFT_NAME_CHARACTERS]}"  # no path of a volume's source may begin so
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(draft, flags, 0o600, dir_fd=parent), "wb") as target:
            target.write(file.data)
            target.flush()
            os.fchmod(target.fileno(), file.mode | (0o040 if group is not None else 0))
            if group is not None:
                os.fchown(target.fileno(), -1, group)
        os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)


def status(folder: Path, path: str) -> os.stat_result | None:
    """The status of the file at `path` within the volume at `folder`, None where there is none.

    A symbolic link that leads out of the volume is not followed. Blocks. Raises ConfigFault, OSError.
    """
    try:
        root = beneath.open_folder(str(folder))
        try:
            found = beneath.open_beneath(root, safe_path(path))
        finally:
            os.close(root)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(found)
    finally:
        os.close(found)


@contextmanager
def _opened(folder: Path, path: str) -> Iterator[int]:
    """A descriptor of the folder at `path` within `folder`, made where it is missing."""
    root = beneath.open_folder(str(folder))
    try:
        found = beneath.make_beneath(root, path, FOLDER_MODE)
    finally:
        os.close(root)
    try:
        yield found
    finally:
        os.close(found)
