"""What the node does with files and processes before it runs its first pod.

`node_agent` calls it; all functions block and are called in a thread.
"""

import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podscaler.controlplane.kubelet import node
from podscaler.controlplane.kubelet.launching import capabilities
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.processes import cgroups, orphaned_processes
from podscaler.controlplane.kubelet.processes.cgroups import Cgroups
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.settings import RuntimeSettings
from podscaler.controlplane.kubelet.volumes import image_programs


@dataclass(frozen=True, slots=True)
class StartupFindings:
    """What was found.

    Attributes:
        instance: the id of the data directory.
        killed: processes of an earlier run that were ended.
        cgroups: or why there are none.
    """

    instance: str
    node_name: str
    killed: int
    capabilities: Capabilities
    cgroups: Cgroups | str
    capacity: Mapping[str, str]
    info: Mapping[str, str]


def look_around(paths: NodePaths, settings: RuntimeSettings) -> StartupFindings:
    """Make the node's folders, end what an earlier run left behind, and find out what the machine can do."""
    paths.make()
    image_programs.make(paths.programs)
    instance = _instance(paths)
    killed = orphaned_processes.kill_orphans(paths.processes, instance)
    return StartupFindings(
        instance=instance,
        node_name=node.node_name(settings, paths.node_name),
        killed=killed,
        capabilities=capabilities.probe(paths.root),
        cgroups=cgroups.find(),
        capacity=node.capacity(settings),
        info=node.info(),
    )


def _instance(paths: NodePaths) -> str:
    try:
        known = paths.instance.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        known = ""
    if not known:
        known = secrets.token_hex(16)
        paths.instance.touch(mode=0o600)
        paths.instance.write_text(f"{known}\n", encoding="ascii")
    return known


def remove_strangers(paths: NodePaths, known_uids: Iterable[str]) -> None:
    """Remove the files of pods that were deleted while the node did not run."""
    known = set(known_uids)
    for folder in paths.pods.iterdir():
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def remove_pod(paths: NodePaths, uid: str) -> None:
    """Remove the files of one pod."""
    shutil.rmtree(paths.pod(uid), ignore_errors=True)
