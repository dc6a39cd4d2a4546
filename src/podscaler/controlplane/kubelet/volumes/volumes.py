"""Creates the volumes of a pod on disk, and lists the mounts of each container.

`kubelet.pods.pod_worker` calls `prepare` before the first container starts, and `refresh` when an object in a volume
has changed; `container_setup` calls `prepare_mounts` for each start; `kubelet.token_renewal` renews tokens. A new kind
of volume whose files are data is a case in `volume_files`; one with a folder of its own, such as emptyDir, a case in
`prepare`.

Source: Volumes (Kubernetes documentation); Volume, VolumeMount, HostPathVolumeSource (API reference).
Differs: a change of a ConfigMap or Secret reaches a volume at once and file by file (the kubelet swaps a symbolic link
    to a folder, up to a minute later); a change of labels or annotations does not reach downwardAPI volumes; a hostPath
    without a type must exist, and its types Socket, CharDevice and BlockDevice are refused; the medium and the size
    limit of an emptyDir are ignored.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.launching import openat2
from podscaler.controlplane.kubelet.launching.container_config import Mount
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.volumes import environment, volume_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.kubelet.volumes.volume_files import VolumeFile, VolumeSources

_EMPTY_DIR_MODE: Final = 0o777
# with the set-group-ID bit: new files belong to the group of the folder
_GROUP_EMPTY_DIR_MODE: Final = 0o2777
_GROUP_FOLDER_MODE: Final = 0o2775
_ALWAYS_READ_ONLY: Final = frozenset(("configMap", "secret", "downwardAPI", "projected"))


async def prepare(
    pod: Mapping[str, Any],
    placement: PodPlacement,
    *,
    sources: VolumeSources,
    paths: NodePaths,
    threads: ThreadPool,
) -> dict[str, str]:
    """Create the pod's volumes that any container mounts; returns volume name -> path on this machine, only of these.

    Args:
        pod: a core/v1 Pod as JSON, as in the other functions here.
        placement: the addresses and the node of the pod, for downwardAPI files.
        sources: what the files of volumes are read from.

    Raises ContainerConfigError, OSError.
    """
    mounted_names = {
        mount["name"] for container in _all_containers(pod) for mount in container.get("volumeMounts") or []
    }
    volume_paths: dict[str, str] = {}
    for volume in pod["spec"].get("volumes") or []:
        name = volume["name"]
        if name not in mounted_names:
            continue
        if (host_path := volume.get("hostPath")) is not None:
            volume_paths[name] = await threads.run(_prepare_host_path, host_path)
            continue
        folder = paths.volume(pod["metadata"]["uid"], name)
        is_empty_dir = "emptyDir" in volume
        files = None if is_empty_dir else volume_files.files(volume, pod, placement, sources)
        await threads.run(_make_volume, folder, files, _fs_group(pod))
        volume_paths[name] = str(folder)
    return volume_paths


async def refresh(
    pod: Mapping[str, Any],
    placement: PodPlacement,
    changed: tuple[str, str],
    *,
    sources: VolumeSources,
    paths: NodePaths,
    threads: ThreadPool,
) -> None:
    """Write the present content of an object into the pod's volumes; files of removed keys are removed.

    Mounts of a subPath that is a file keep the former content. Tokens stay.

    Args:
        changed: the resource of the object (`configmaps`, `secrets` or TRUST_BUNDLES), and its name.

    Raises ContainerConfigError (the object is gone and not optional: the volume keeps its content), OSError.
    """
    for volume in pod["spec"].get("volumes") or []:
        folder = paths.volume(pod["metadata"]["uid"], volume["name"])
        if not volume_files.has_object(volume, *changed) or not await threads.run(folder.exists):
            continue
        volume_without_tokens, token_paths = _without_tokens(volume)
        files = volume_files.files(volume_without_tokens, pod, placement, sources)
        await threads.run(volume_files.write_changed, folder, files, kept_paths=token_paths, group=_fs_group(pod))


def _without_tokens(volume: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """The volume without its serviceAccountToken sources, and the paths of these in the volume."""
    if "projected" not in volume:
        return volume, []
    projections = volume["projected"].get("sources") or []
    other_projections = [projection for projection in projections if "serviceAccountToken" not in projection]
    token_paths = [
        projection["serviceAccountToken"]["path"] for projection in projections if "serviceAccountToken" in projection
    ]
    return {**volume, "projected": {**volume["projected"], "sources": other_projections}}, token_paths


def _fs_group(pod: Mapping[str, Any]) -> int | None:
    """The numeric group that owns the pod's volumes (fsGroup); None: that of `up`, also where `up` is not root."""
    if os.geteuid() != 0:
        return None
    return (pod["spec"].get("securityContext") or {}).get("fsGroup")


def _all_containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


def _prepare_host_path(source: Mapping[str, Any]) -> str:
    """Create or check the path of a hostPath volume, as its type says, and return it. Blocks.

    Raises ContainerConfigError, OSError.
    """
    path, path_type = source["path"], source.get("type") or ""
    if "\0" in path:
        raise volume_files.mount_error("hostPath holds a NUL byte, which no path can have")
    if path_type == "DirectoryOrCreate":
        with contextlib.suppress(FileExistsError):  # a file: the check of the type below names it
            os.makedirs(path, mode=volume_files.FOLDER_MODE, exist_ok=True)
    elif path_type == "FileOrCreate":
        with contextlib.suppress(FileExistsError):  # an existing file is not opened: opening a FIFO would block
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    elif path_type not in ("", "Directory", "File"):
        raise volume_files.mount_error(f"hostPath type {path_type} is not supported")
    if not os.path.exists(path):
        raise volume_files.mount_error(f"hostPath {path} does not exist")
    expected_type = path_type.removesuffix("OrCreate")
    if (expected_type == "Directory" and not os.path.isdir(path)) or (
        expected_type == "File" and not os.path.isfile(path)
    ):
        raise volume_files.mount_error(f"hostPath type check failed: {path} is not a {expected_type.lower()}")
    return str(path)


def _make_volume(folder: Path, files: list[VolumeFile] | None, group: int | None) -> None:
    """Create the folder of a volume with its files. Blocks. Raises ContainerConfigError, OSError.

    Args:
        files: None for an emptyDir.
        group: the group that owns it, and may write to it; None for that of `up`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(_EMPTY_DIR_MODE if files is None else volume_files.FOLDER_MODE)
    if group is not None:
        os.chown(folder, -1, group)
        folder.chmod(_GROUP_EMPTY_DIR_MODE if files is None else _GROUP_FOLDER_MODE)
    for file in files or []:
        volume_files.write(folder, file, group=group)


def prepare_mounts(
    pod: Mapping[str, Any], container: Mapping[str, Any], volume_paths: Mapping[str, str], env: Mapping[str, str]
) -> tuple[Mount, ...]:
    """Create the missing directories of subPaths, and return the container's mounts, parents before children. Blocks.

    Args:
        container: a core/v1 Container of `pod`.
        volume_paths: the result of `prepare`.
        env: the container's environment, for subPathExpr.

    Raises ContainerConfigError, OSError.
    """
    # the field of a core/v1 Volume besides its name says of which kind it is
    kinds_by_volume = {volume["name"]: set(volume) - {"name"} for volume in pod["spec"].get("volumes") or []}
    container_mounts = []
    for volume_mount in container.get("volumeMounts") or []:
        name = volume_mount["name"]
        if name not in volume_paths:
            raise ContainerConfigError(f'the volume "{name}" of a volumeMount is not there')
        read_only = bool(volume_mount.get("readOnly")) or bool(kinds_by_volume[name] & _ALWAYS_READ_ONLY)
        source, sub_path = volume_paths[name], _sub_path(volume_mount, env)
        if sub_path:
            _make_sub_path(source, sub_path)
        container_mounts.append(Mount(source, os.path.normpath(volume_mount["mountPath"]), read_only, sub_path))
    return tuple(sorted(container_mounts, key=lambda mount: len(Path(mount.target).parts)))


def _sub_path(volume_mount: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """The path within the volume that is mounted, empty for all of it. Raises ContainerConfigError."""
    sub_path = volume_mount.get("subPath") or environment.expand_references(volume_mount.get("subPathExpr") or "", env)
    return volume_files.safe_path(sub_path) if sub_path else ""


def _make_sub_path(source: str, sub_path: str) -> None:
    """Create the missing directories of a subPath with the mode of the volume, as kubelet does.

    Args:
        source: the path of the volume.

    Raises ContainerConfigError.
    """
    try:
        with openat2.opened_folder(source) as volume:
            os.close(openat2.make_beneath(volume, sub_path, stat.S_IMODE(os.fstat(volume).st_mode)))
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.ELOOP):  # as `openat2` reports a symbolic link
            raise ContainerConfigError(f'the subPath "{sub_path}" leads out of its volume') from error
        raise ContainerConfigError(f'the subPath "{sub_path}" cannot be made: {error.strerror}') from error
