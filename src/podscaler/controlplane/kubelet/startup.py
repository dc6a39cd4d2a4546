"""Prepares the node before it runs its first pod: directories, orphaned processes, and facts about this host.

`kubelet.node_agent` calls `detect_host` at its start, then `remove_orphaned_pods`, and `remove_pod` after the end of a
pod. All functions block and are called in a thread. A new fact about the host: a field of `DetectedHost`, set in
`detect_host`.
"""

import os
import platform
import secrets
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from podscaler.api.machinery import names
from podscaler.base.version import __version__
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.kubelet.launching import capabilities, images
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.processes import cgroups, orphaned_processes
from podscaler.controlplane.kubelet.processes.cgroups import Cgroups
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings

KUBELET_VERSION: Final = "v1.37.0"
"""The release whose kubelet this one is like; the Node and /metrics (`kubelet.server.kubelet_pages`) have it."""
INSTANCE_BYTES: Final = 16
"""Random bytes in the id of a data directory."""

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class DetectedHost:
    """The result of `detect_host`: facts about this host, and about the data directory.

    Attributes:
        instance: the id of the data directory.
        killed_orphans: how many orphaned processes of an earlier run were killed.
        cgroups: the cgroup that is delegated to `up`, or why there is none.
        capacity, node_info: the Node's status.capacity and status.nodeInfo.
    """

    instance: str
    node_name: str
    killed_orphans: int
    capabilities: Capabilities
    cgroups: Cgroups | str
    capacity: Mapping[str, str]
    node_info: Mapping[str, str]


def detect_host(paths: NodePaths, settings: KubeletSettings) -> DetectedHost:
    """Make the node's directories, kill orphaned processes of an earlier run, and detect what the host provides.

    Raises OSError, UsageError.
    """
    paths.make()
    images.write_programs(paths.programs, images.MACHINE_BUSYBOX)
    instance = _ensure_instance(paths)
    killed_orphans = orphaned_processes.kill_orphans(paths.process_records, instance)
    return DetectedHost(
        instance=instance,
        node_name=ensure_node_name(settings, paths.node_name),
        killed_orphans=killed_orphans,
        capabilities=capabilities.detect(paths.root),
        cgroups=cgroups.set_up(),
        capacity=capacity(settings),
        node_info=node_info(),
    )


def ensure_node_name(settings: KubeletSettings, name_file: Path) -> str:
    """The node's name: the setting, that of the last run, or the host name, which is then stored.

    Args:
        name_file: the file with the name of the last run; it may be missing.

    Raises OSError (the file cannot be read), UsageError (it cannot be written).
    """
    if settings.node_name:
        return settings.node_name
    try:
        name = name_file.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        name = ""
    if not name or names.dns_subdomain_errors(name):
        name = _host_name()
        secret_files.write(name_file, f"{name}\n".encode())
    return name


def _host_name() -> str:
    """The host name in lower case; `podscaler` where that is not a valid name of a Node."""
    name = socket.gethostname().lower()
    return "podscaler" if names.dns_subdomain_errors(name) else name


def capacity(settings: KubeletSettings) -> dict[str, str]:
    """Node.status.capacity: the machine's resources, as quantities. Raises OSError."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "cpu": str(cpus),
        "memory": f"{psutil.virtual_memory().total // 1024}Ki",
        "ephemeral-storage": f"{psutil.disk_usage(str(settings.data_dir)).total // 1024}Ki",
        "pods": str(settings.max_pods),
    }


def node_info() -> dict[str, str]:
    """Node.status.nodeInfo; what cannot be read is empty."""
    machine_id = _read_line("/etc/machine-id")
    return {
        "machineID": machine_id,
        "systemUUID": machine_id,
        "bootID": _read_line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": platform.release(),
        "osImage": _os_image(),
        "containerRuntimeVersion": f"podscaler://{__version__}",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux" if sys.platform == "linux" else platform.system().lower(),
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }


def _read_line(path: str) -> str:
    """The content of a file with one line, empty if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _os_image() -> str:
    """The name of the Linux distribution, or of another system."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return f"{platform.system()} {platform.release()}"


def _ensure_instance(paths: NodePaths) -> str:
    """The id of the data directory, created at the first start. Raises OSError."""
    try:
        instance = paths.instance.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        instance = ""
    if not instance:
        instance = secrets.token_hex(INSTANCE_BYTES)
        paths.instance.touch(mode=0o600)
        paths.instance.write_text(f"{instance}\n", encoding="ascii")
    return instance


def remove_orphaned_pods(paths: NodePaths, stored_uids: Iterable[str]) -> None:
    """Remove the files of pods that were deleted while the node did not run. Raises OSError.

    Args:
        stored_uids: the uids of all pods that exist.
    """
    kept_names = set(stored_uids)
    for folder in paths.pods.iterdir():
        if folder.name not in kept_names:
            shutil.rmtree(folder, ignore_errors=True)


def remove_pod(paths: NodePaths, uid: str) -> None:
    """Remove the files of one pod, if there are any. Raises UnsafeName."""
    shutil.rmtree(paths.pod(uid), ignore_errors=True)
