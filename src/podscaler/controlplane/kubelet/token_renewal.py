"""Renews the service account tokens in pods' volumes before they expire.

`kubelet.node_agent` runs `run` beside the pod workers; `kubelet.volumes.volumes` writes the first token. A token is
renewed after 80 % of its lifetime, at the latest after a day; its age is that of its file, so that a restart of the
node changes nothing. The file is replaced atomically.

Source: pkg/kubelet/token/token_manager.go (kubelet); "Launch a Pod using service account token projection" (Kubernetes
documentation).
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.volumes import volume_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.registry.registry import Object

PERIOD_S: Final = 60.0
"""The delay between two checks of all tokens."""
DUE_RATIO: Final = 0.8
"""Of a token's lifetime: the age at which it is renewed, but at most DUE_MAX_S."""
DUE_MAX_S: Final = 24 * 3600.0
PERMISSION_BITS: Final = 0o777

_log = logging.getLogger(__name__)


async def run(
    list_pods: Callable[[], Sequence[Object]],
    issue_token: IssueToken,
    *,
    paths: NodePaths,
    threads: ThreadPool,
    clock: Clock,
) -> None:
    """Check all tokens every PERIOD_S seconds until cancelled, and renew those that are due; failures are logged.

    Args:
        list_pods: returns the pods of the node, as JSON objects.
    """
    while True:
        await clock.sleep(PERIOD_S)
        for pod in list_pods():
            for volume_name, source in _token_sources(pod):
                folder = paths.volume(pod["metadata"]["uid"], volume_name)
                try:
                    await _renew_if_due(pod, source, folder, issue_token, threads=threads, clock=clock)
                except (ContainerConfigError, OSError) as error:
                    _log.warning("the token of pod %s cannot be renewed: %s", pod["metadata"]["name"], error)


async def _renew_if_due(
    pod: Object,
    source: Mapping[str, Any],
    folder: Path,
    issue_token: IssueToken,
    *,
    threads: ThreadPool,
    clock: Clock,
) -> None:
    """Replace the token of one source by a new one if it is due; its mode and group stay.

    Args:
        source: a core/v1 ServiceAccountTokenProjection.
        folder: the volume with the token; without the file nothing is done.

    Raises ContainerConfigError, OSError.
    """
    file_status = await threads.run(volume_files.status, folder, source["path"])
    if file_status is None or clock.now_ns() < file_status.st_mtime_ns + _renew_after_ns(source):
        return
    file = volume_files.token_file(source, pod, issue_token, file_status.st_mode & PERMISSION_BITS)
    group = file_status.st_gid if file_status.st_gid != os.getegid() else None  # None: `write` sets no group
    await threads.run(volume_files.write, folder, file, group=group)


def _token_sources(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The serviceAccountToken sources of a pod, each after the name of its volume."""
    for volume in pod["spec"].get("volumes") or ():
        for projection in (volume.get("projected") or {}).get("sources") or ():
            token_source = projection.get("serviceAccountToken")
            if token_source is not None:
                yield volume["name"], token_source


def _renew_after_ns(source: Mapping[str, Any]) -> int:
    """The age in nanoseconds at which the token of a core/v1 ServiceAccountTokenProjection is renewed."""
    life_s = source.get("expirationSeconds") or volume_files.TOKEN_LIFE_S
    return int(min(life_s * DUE_RATIO, DUE_MAX_S) * NANOSECONDS)
