"""Renews the service account tokens in pods' volumes before they expire.

`node_agent` runs it beside the pod workers. A token is renewed after 80 % of its lifetime, at the latest after a day;
its age is that of its file, so that a restart of the node changes nothing. The file is replaced atomically.

Source: pkg/kubelet/token/token_manager.go (kubelet); "Launch a Pod using service account token projection" (Kubernetes
documentation).
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.volumes import volume_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.registry.registry import Object

PERIOD_S: Final = 60.0
DUE_RATIO: Final = 0.8
DUE_MAX_S: Final = 24 * 3600.0

_log = logging.getLogger(__name__)


async def run(
    pods: Callable[[], Sequence[Object]], issue: IssueToken, *, paths: NodePaths, threads: ThreadPool, clock: Clock
) -> None:
    """Renew the tokens of `pods()` every PERIOD_S seconds until cancelled. A token that cannot be renewed is logged."""
    while True:
        await clock.sleep(PERIOD_S)
        for pod in pods():
            for volume, source in _tokens(pod):
                folder = paths.volume(pod["metadata"]["uid"], volume)
                try:
                    former = await threads.run(volume_files.status, folder, source["path"])
                    if former is not None and clock.now_ns() >= former.st_mtime_ns + _renew_after_ns(source):
                        file = volume_files.token_file(source, pod, issue, former.st_mode & 0o777)
                        group = former.st_gid if former.st_gid != os.getegid() else None
                        await threads.run(volume_files.write, folder, file, group=group)
                except (ContainerConfigError, OSError) as error:
                    _log.warning("the token of pod %s cannot be renewed: %s", pod["metadata"]["name"], error)


def _tokens(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The serviceAccountToken sources of a pod, with the names of their volumes."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None:
                yield volume["name"], token


def _renew_after_ns(source: Mapping[str, Any]) -> int:
    life_s = source.get("expirationSeconds") or volume_files.TOKEN_LIFE_S
    return int(min(life_s * DUE_RATIO, DUE_MAX_S) * NANOSECONDS)
