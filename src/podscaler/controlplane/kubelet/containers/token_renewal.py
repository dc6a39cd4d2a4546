"""Tokens in pods' volumes, written anew long before they expire.

`node_agent` runs it beside the pods' workers. A token is due after four fifths of its life; the age of its file says
when that is, so that a restarted node goes on where it was. Containers see the new file in the place of the old one.

Source: the kubelet's handling of projected service account tokens.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.volumes import volume_files
from podscaler.controlplane.kubelet.volumes.references import ConfigFault
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.registry.registry import Object

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where containers expect the token of their service account."""
PERIOD_S: Final = 60.0
DUE_RATIO: Final = 0.8
DUE_MAX_S: Final = 24 * 3600.0

_log = logging.getLogger(__name__)


async def run(host: Host, pods: Callable[[], Sequence[Object]]) -> None:
    """Renew the tokens of `pods()` until cancelled."""
    while True:
        await host.clock.sleep(PERIOD_S)
        issue = host.issue_token
        for pod in pods() if issue is not None else ():
            if issue is not None and any(_tokens(pod)):
                await _renew(host, pod, issue)


async def _renew(host: Host, pod: Object, issue: IssueToken) -> None:
    for name, source in _tokens(pod):
        folder = host.paths.volume(pod["metadata"]["uid"], name)
        try:
            former = await host.threads.run(volume_files.status, folder, source["path"])
            if former is None or host.clock.now_ns() < former.st_mtime_ns + _span_ns(source):
                continue
            file = volume_files.token_file(source, pod, issue, former.st_mode & 0o777)
            group = former.st_gid if former.st_gid != os.getegid() else None
            await host.threads.run(volume_files.write, folder, file, group=group)
        except (ConfigFault, OSError) as error:
            _log.warning("the token of pod %s cannot be renewed: %s", pod["metadata"]["name"], error)


def _tokens(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The token sources of a pod, with the names of their volumes."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None:
                yield volume["name"], token


def _span_ns(source: Mapping[str, Any]) -> int:
    """How long a token stays."""
    life_s = source.get("expirationSeconds") or volume_files.TOKEN_LIFE_S
    return int(min(life_s * DUE_RATIO, DUE_MAX_S) * NANOSECONDS)
