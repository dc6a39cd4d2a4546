"""The files of configMap, secret, downwardAPI and projected volumes, and writing them into a volume.

`volumes` and `token_renewal` call it. All functions but `write`, `write_changed` and `status` are pure, except
for lookups in the registry's memory. An object or key that is missing is a ContainerConfigError.

Source: Volumes, Projected Volumes (Kubernetes documentation).
Differs: persistentVolumeClaim, csi and network volumes are not supported.
"""

import base64
import contextlib
import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.api.kinds.core import clustertrustbundle
from podscaler.api.machinery import selectors
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.launching import openat2
from podscaler.controlplane.kubelet.volumes import references
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, FindObject, PodPlacement
from podscaler.controlplane.registry.registry import Object

DEFAULT_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
DRAFT_NAME_CHARACTERS: Final = 60
"""Of a file's name in the name of its draft: names may have 255 bytes, and a character may have 4."""
TOKEN_LIFE_S: Final = 3600
TRUST_BUNDLES: Final = "clustertrustbundles.certificates.k8s.io"
PEM_LINE_CHARACTERS: Final = 64
MOUNT_REASON: Final = "ContainerCreating"
"""The waiting reason of containers whose pod's volumes cannot be mounted, as upstream; an event has the error."""


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file: its path within the volume, content and permissions."""

    path: str
    data: bytes
    mode: int


IssueToken = Callable[[Mapping[str, Any], str, int], str]
"""Issues a token of a pod's service account: pod, audience (empty: the API server), lifetime in seconds.

Raises StatusError if there is no such account.
"""


@dataclass(frozen=True, slots=True)
class VolumeSources:
    """What the content of volumes comes from.

    Attributes:
        find: finds ConfigMaps, Secrets and ClusterTrustBundles.
        trust_bundles: all ClusterTrustBundles.
        issue: None if the API server issues no tokens.
    """

    find: FindObject
    trust_bundles: Callable[[], Iterable[Object]] = tuple
    issue: IssueToken | None = None


def files(
    volume: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement, sources: VolumeSources
) -> list[VolumeFile]:
    """The files of a configMap, secret, downwardAPI or projected volume. Raises ContainerConfigError.

    Args:
        volume: a core/v1 Volume of `pod`.
    """
    makers: dict[str, Callable[[Mapping[str, Any]], list[VolumeFile]]] = {
        "configMap": lambda source: _from_object("ConfigMap", source, source.get("name", ""), pod, sources.find),
        "secret": lambda source: _from_object("Secret", source, source.get("secretName", ""), pod, sources.find),
        "downwardAPI": lambda source: _downward(source, pod, place),
        "projected": lambda source: _projected(source, pod, place, sources),
    }
    for kind, make in makers.items():
        if (source := volume.get(kind)) is not None:
            return make(source)
    kinds = ", ".join(sorted(set(volume) - {"name"}))
    raise mount_error(f'volume "{volume["name"]}" is of a kind that this node does not have: {kinds}')


def has_object(volume: Mapping[str, Any], resource: str, name: str) -> bool:
    """Whether a volume has files of an object; of ClusterTrustBundles, whether it may have any.

    Args:
        resource: `configmaps`, `secrets` or `clustertrustbundles`.
    """
    if resource == TRUST_BUNDLES:
        return any("clusterTrustBundle" in entry for entry in (volume.get("projected") or {}).get("sources") or ())
    kind, key = ("secret", "secretName") if resource == "secrets" else ("configMap", "name")
    sources = (volume.get("projected") or {}).get("sources") or ()
    return name in ((volume.get(kind) or {}).get(key), *((entry.get(kind) or {}).get("name") for entry in sources))


def token_file(source: Mapping[str, Any], pod: Mapping[str, Any], issue: IssueToken, mode: int) -> VolumeFile:
    """The file of a serviceAccountToken source, with a new token. Raises ContainerConfigError."""
    life_s = source.get("expirationSeconds") or TOKEN_LIFE_S
    try:
        token = issue(pod, source.get("audience") or "", life_s)
    except StatusError as error:
        raise mount_error(f"failed to fetch token: {error.message}") from error
    return VolumeFile(source["path"], token.encode(), mode)


def _projected(
    source: Mapping[str, Any], pod: Mapping[str, Any], place: PodPlacement, sources: VolumeSources
) -> list[VolumeFile]:
    """The files of all sources of a projected volume. Raises ContainerConfigError."""
    find, issue = sources.find, sources.issue
    projected_files: list[VolumeFile] = []
    for entry in source.get("sources") or []:
        mode = {"defaultMode": source.get("defaultMode")}
        if (projection := entry.get("configMap")) is not None:
            projected_files += _from_object("ConfigMap", mode | projection, projection.get("name", ""), pod, find)
        elif (projection := entry.get("secret")) is not None:
            projected_files += _from_object("Secret", mode | projection, projection.get("name", ""), pod, find)
        elif (projection := entry.get("downwardAPI")) is not None:
            projected_files += _downward(mode | projection, pod, place)
        elif (projection := entry.get("serviceAccountToken")) is not None and issue is not None:
            projected_files.append(token_file(projection, pod, issue, _mode(source.get("defaultMode"), DEFAULT_MODE)))
        elif (projection := entry.get("clusterTrustBundle")) is not None:
            projected_files.append(
                _trust_bundle_file(projection, sources, _mode(source.get("defaultMode"), DEFAULT_MODE))
            )
        else:
            raise mount_error(f"this node cannot project {', '.join(entry)}")
    return projected_files


def _trust_bundle_file(source: Mapping[str, Any], sources: VolumeSources, mode: int) -> VolumeFile:
    """The file of a clusterTrustBundle source: each certificate once. Raises ContainerConfigError."""
    if name := source.get("name"):
        bundle = sources.find(TRUST_BUNDLES, "", name)
        bundles = [] if bundle is None else [bundle]
        missing = f'could not get ClusterTrustBundle "{name}"'
    else:
        signer, selector = source.get("signerName"), selectors.from_label_selector(source.get("labelSelector"))
        bundles = [
            trust_bundle
            for trust_bundle in sources.trust_bundles()
            if clustertrustbundle.signer_of(trust_bundle) == signer
            and selector.matches(trust_bundle["metadata"].get("labels") or {})
        ]
        missing = f'no ClusterTrustBundles of the signer "{signer}" match the label selector'
    if not bundles and not source.get("optional"):
        raise mount_error(missing)
    blocks = {block.data for each in bundles for block in clustertrustbundle.pem_blocks(each["spec"]["trustBundle"])}
    return VolumeFile(source["path"], b"".join(map(_pem, sorted(blocks))), mode)


def _pem(certificate: bytes) -> bytes:
    lines = textwrap.wrap(base64.b64encode(certificate).decode(), PEM_LINE_CHARACTERS)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()


def _from_object(
    kind: str, source: Mapping[str, Any], name: str, pod: Mapping[str, Any], find: FindObject
) -> list[VolumeFile]:
    """The files of a ConfigMap or Secret; none if it is missing and optional."""
    obj = find(f"{kind.lower()}s", pod["metadata"]["namespace"], name)
    if obj is None:
        if source.get("optional"):
            return []
        raise mount_error(f'{kind.lower()} "{name}" not found')
    if kind == "Secret":
        content = {key: references.decoded(value) for key, value in (obj.get("data") or {}).items()}
    else:
        content = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
        content |= {key: references.decoded(value) for key, value in (obj.get("binaryData") or {}).items()}
    return _selected(source, content, f"{kind} {name}")


def _selected(source: Mapping[str, Any], content: Mapping[str, bytes], origin: str) -> list[VolumeFile]:
    """The files of the chosen keys; all of them without `items`."""
    mode = _mode(source.get("defaultMode"), DEFAULT_MODE)
    if not source.get("items"):
        return [VolumeFile(key, content[key], mode) for key in sorted(content)]
    chosen = []
    for item in source["items"]:
        if item["key"] in content:
            chosen.append(VolumeFile(item["path"], content[item["key"]], _mode(item.get("mode"), mode)))
        elif not source.get("optional"):
            raise mount_error(f"references non-existent config key: {item['key']} ({origin})")
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
    except ContainerConfigError as error:
        raise mount_error(error.message) from error


def _mode(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def mount_error(message: str) -> ContainerConfigError:
    """The error of a volume that cannot be mounted."""
    return ContainerConfigError(message, reason=MOUNT_REASON)


def safe_path(path: str) -> str:
    """Return `path`. Raises ContainerConfigError unless it is relative and stays within the volume."""
    if path.startswith("/") or ".." in path.split("/") or not path or "\0" in path:
        raise mount_error(f'"{path}" is no path within a volume')
    return path


def write(folder: Path, file: VolumeFile, *, group: int | None) -> None:
    """Write `file` into the volume at `folder`, replacing a former one atomically. Blocks.

    No symbolic link that leads out of the volume is followed.

    Args:
        group: the id of the group that owns the file and may read it; None for the group of `up`.

    Raises ContainerConfigError, OSError.
    """
    above, _, name = safe_path(file.path).rpartition("/")
    if name in ("", "."):
        raise mount_error(f'"{file.path}" is no path of a file')
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


def write_changed(folder: Path, content: Sequence[VolumeFile], *, kept: Collection[str], group: int | None) -> None:
    """Write the files that differ into the volume at `folder`, and remove files that are not in `content`. Blocks.

    Args:
        kept: paths of files that stay as they are.
        group: as for `write`.

    Raises ContainerConfigError, OSError.
    """
    for file in content:
        if not _has_data(folder, file):
            write(folder, file, group=group)
    expected = {os.path.normpath(path) for path in (*kept, *(file.path for file in content))}
    for parent, _, names, descriptor in os.fwalk(folder):
        for name in names:
            if os.path.relpath(os.path.join(parent, name), folder) not in expected:
                os.unlink(name, dir_fd=descriptor)


def _has_data(folder: Path, file: VolumeFile) -> bool:
    """Whether the volume at `folder` has the file with this content; False if it cannot be read."""
    above, _, name = safe_path(file.path).rpartition("/")
    with _opened(folder, above) as parent:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with open(os.open(name, flags, dir_fd=parent), "rb") as former:
                return former.read(len(file.data) + 1) == file.data
        except OSError:
            return False  # it is written, and the error of that is raised


def status(folder: Path, path: str) -> os.stat_result | None:
    """stat(2) of the file at `path` within the volume at `folder`, None if there is none. Blocks.

    A symbolic link that leads out of the volume is not followed. Raises ContainerConfigError, OSError.
    """
    try:
        with openat2.opened_folder(str(folder)) as root:
            descriptor = openat2.open_beneath(root, safe_path(path))
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _opened(folder: Path, path: str) -> Iterator[int]:
    """A descriptor of the directory at `path` within `folder`, created if it is missing."""
    with openat2.opened_folder(str(folder)) as root:
        descriptor = openat2.make_beneath(root, path, FOLDER_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
