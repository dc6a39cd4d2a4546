"""Tokens in pods' volumes, written anew long before they expire.

`node_agent` runs it beside the pods' workers. A token is due after four fifths of its life; the age of its file says
when that is, so that a restarted node goes on where it was. Containers see the new file in the place of the old one.

Source: the kubelet's handling of projected service account tokens.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from podscaler.clock import NANOSECONDS
from podscaler.controlplane.registry import Object
from podscaler.controlplane.runtime import volume_files
from podscaler.controlplane.runtime.host import Host
from podscaler.controlplane.runtime.references import ConfigFault
from podscaler.controlplane.runtime.volume_files import IssueToken

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
        path = host.paths.volume(pod["metadata"]["uid"], name) / source["path"]
        try:
            written_ns = await host.threads.run(_written_ns, path)
            if written_ns is None or host.clock.now_ns() < written_ns + _span_ns(source):
                continue
            file = volume_files.token_file(source, pod, issue, volume_files.DEFAULT_MODE)
            await host.threads.run(_replace, path, file.data)
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


def _written_ns(path: Path) -> int | None:
    """When the file was written, None where there is none (yet)."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _replace(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file, with its mode and owner: a reader sees one or the other."""
    former = path.stat()
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as target:
        target.write(content)
        os.fchown(descriptor, former.st_uid, former.st_gid)
        os.fchmod(descriptor, former.st_mode & 0o777)
    temporary.replace(path)
