"""Creates the volumes of a pod on disk, and lists the mounts of each container.

`pod_worker` calls `prepare` before the first container starts, and `refresh` when an object in a volume has changed;
`container_setup` calls `mounts` for each start. Tokens are renewed (`token_renewal`).

Source: Volumes (Kubernetes documentation); Volume, VolumeMount, HostPathVolumeSource (API reference).
Differs: a change of a ConfigMap or Secret reaches a volume at once, file by file, and not up to a minute later with a
symbolic link to a folder; a change of labels or annotations does not reach downwardAPI volumes.
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
_ALWAYS_READ_ONLY: Final = frozenset(("configMap", "secret", "downwardAPI", "projected"))


async def prepare(
    pod: Mapping[str, Any],
    place: PodPlacement,
    *,
    contents: VolumeSources,
    paths: NodePaths,
    threads: ThreadPool,
) -> dict[str, str]:
    """Create the pod's volumes that any container mounts, and return their paths by name.

    Raises ContainerConfigError, OSError.
    """
    used = {mount["name"] for container in _containers(pod) for mount in container.get("volumeMounts") or []}
    sources: dict[str, str] = {}
    for volume in pod["spec"].get("volumes") or []:
        name = volume["name"]
        if name not in used:
            continue
        if (host_path := volume.get("hostPath")) is not None:
            sources[name] = await threads.run(_host_path, host_path)
            continue
        folder = paths.volume(pod["metadata"]["uid"], name)
        content = None if "emptyDir" in volume else volume_files.files(volume, pod, place, contents)
        await threads.run(_make, folder, content, _group(pod))
        sources[name] = str(folder)
    return sources


async def refresh(
    pod: Mapping[str, Any],
    place: PodPlacement,
    changed: tuple[str, str],
    *,
    contents: VolumeSources,
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
        others, tokens = _without_tokens(volume)
        content = volume_files.files(others, pod, place, contents)
        await threads.run(volume_files.write_changed, folder, content, kept=tokens, group=_group(pod))


def _without_tokens(volume: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """The volume without its serviceAccountToken sources, and the paths of these."""
    if "projected" not in volume:
        return volume, []
    entries = volume["projected"].get("sources") or []
    others = [entry for entry in entries if "serviceAccountToken" not in entry]
    tokens = [entry["serviceAccountToken"]["path"] for entry in entries if "serviceAccountToken" in entry]
    return {**volume, "projected": {**volume["projected"], "sources": others}}, tokens


def _group(pod: Mapping[str, Any]) -> int | None:
    """The group that owns the pod's volumes, None for that of `up`."""
    return (pod["spec"].get("securityContext") or {}).get("fsGroup") if os.geteuid() == 0 else None


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


def _host_path(source: Mapping[str, Any]) -> str:
    """The path of a hostPath volume, created or checked as its type says. Raises ContainerConfigError."""
    path, kind = source["path"], source.get("type") or ""
    if "\0" in path:
        raise volume_files.mount_error("hostPath holds a NUL byte, which no path can have")
    if kind == "DirectoryOrCreate":
        with contextlib.suppress(FileExistsError):  # a file: the check of the type below names it
            os.makedirs(path, mode=volume_files.FOLDER_MODE, exist_ok=True)
    elif kind == "FileOrCreate":
        with contextlib.suppress(FileExistsError):  # an existing file is not opened: opening a FIFO would block
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    elif kind not in ("", "Directory", "File"):
        raise volume_files.mount_error(f"hostPath type {kind} is not supported")
    if not os.path.exists(path):
        raise volume_files.mount_error(f"hostPath {path} does not exist")
    expected = kind.removesuffix("OrCreate")
    if (expected == "Directory" and not os.path.isdir(path)) or (expected == "File" and not os.path.isfile(path)):
        raise volume_files.mount_error(f"hostPath type check failed: {path} is not a {expected.lower()}")
    return str(path)


def _make(folder: Path, content: list[VolumeFile] | None, group: int | None) -> None:
    """Create the folder of a volume with its files; `content` None is an emptyDir."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(_EMPTY_DIR_MODE if content is None else volume_files.FOLDER_MODE)
    if group is not None:
        os.chown(folder, -1, group)
        folder.chmod(0o2775 if content is not None else 0o2777)
    for file in content or []:
        volume_files.write(folder, file, group=group)


def mounts(
    pod: Mapping[str, Any], container: Mapping[str, Any], sources: Mapping[str, str], env: Mapping[str, str]
) -> tuple[Mount, ...]:
    """The container's mounts, parents before children; creates the directories of subPaths. Blocks.

    Args:
        sources: the result of `prepare`.
        env: the container's environment, for subPathExpr.

    Raises ContainerConfigError, OSError.
    """
    kinds = {volume["name"]: set(volume) - {"name"} for volume in pod["spec"].get("volumes") or []}
    mounts_of_pod = []
    for entry in container.get("volumeMounts") or []:
        if entry["name"] not in sources:
            raise ContainerConfigError(f'the volume "{entry["name"]}" of a volumeMount is not there')
        read_only = bool(entry.get("readOnly")) or bool(kinds[entry["name"]] & _ALWAYS_READ_ONLY)
        source, sub_path = sources[entry["name"]], _sub_path(entry, env)
        if sub_path:
            _make_sub_path(source, sub_path)
        mounts_of_pod.append(Mount(source, os.path.normpath(entry["mountPath"]), read_only, sub_path))
    return tuple(sorted(mounts_of_pod, key=lambda mount: len(Path(mount.target).parts)))


def _sub_path(entry: Mapping[str, Any], env: Mapping[str, str]) -> str:
    sub_path = entry.get("subPath") or environment.expanded(entry.get("subPathExpr") or "", env)
    return volume_files.safe_path(sub_path) if sub_path else ""


def _make_sub_path(source: str, sub_path: str) -> None:
    """Create the missing directories of a subPath with the mode of the volume, as kubelet does."""
    try:
        with openat2.opened_folder(source) as volume:
            os.close(openat2.make_beneath(volume, sub_path, stat.S_IMODE(os.fstat(volume).st_mode)))
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.ELOOP):
            raise ContainerConfigError(f'the subPath "{sub_path}" leads out of its volume') from error
        raise ContainerConfigError(f'the subPath "{sub_path}" cannot be made: {error.strerror}') from error
