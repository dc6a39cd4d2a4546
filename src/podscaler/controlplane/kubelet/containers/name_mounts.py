"""Giving a container its own resolv.conf and hosts file, where the machine allows private mounts.

`launch` asks at each start: `facts` on the event loop, `mounts` in a thread.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.launching.launch_plan import Mount
from podscaler.controlplane.kubelet.volumes import name_files
from podscaler.controlplane.kubelet.volumes.references import PodPlacement


@dataclass(frozen=True, slots=True)
class NameFacts:
    """What the files are made from.

    Attributes:
        services: those whose names no name server knows.
    """

    pod_ip: str
    services: Sequence[Mapping[str, Any]]


def facts(host: Host, place: PodPlacement) -> NameFacts:
    """What is known now."""
    is_answered = host.settings.nameserver or host.capabilities.mount_fault
    return NameFacts(place.pod_ip, () if is_answered else host.registry.list("services"))


def mounts(
    host: Host, pod: Mapping[str, Any], container: str, known: NameFacts, *, taken: Sequence[str]
) -> tuple[Mount, ...]:
    """Write the files and say where to mount them; none where that is not possible. Blocks. Raises OSError.

    Args:
        taken: paths at which the container mounts something of its own, which wins.
    """
    if host.capabilities.mount_fault or "/etc" in taken:
        return ()
    texts = {
        name_files.RESOLV_CONF: name_files.resolv_conf(
            pod, nameserver=host.settings.nameserver, machine=_machine_file()
        ),
        name_files.HOSTS: None
        if pod["spec"].get("hostNetwork")
        else name_files.hosts(pod, pod_ip=known.pod_ip, services=known.services),
    }
    folder = host.paths.names(pod["metadata"]["uid"], container)
    wanted = {path: text for path, text in texts.items() if text is not None and path not in taken}
    if wanted:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return tuple(Mount(_written(folder, path, text), path, read_only=False) for path, text in wanted.items())


def _machine_file() -> str:
    try:
        return Path(name_files.RESOLV_CONF).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _written(folder: Path, path: str, text: str) -> str:
    """The file, replaced as a whole: what an earlier start left behind keeps the one that it had."""
    target = folder / os.path.basename(path)
    draft = target.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    os.replace(draft, target)
    return str(target)
