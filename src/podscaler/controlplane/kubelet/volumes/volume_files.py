"""The files of configMap, secret, downwardAPI and projected volumes, and writing them into a volume.

`kubelet.volumes.volumes`, `kubelet.token_renewal` and `kubelet.pods.pod_worker` call it. All functions but `write`,
`write_changed` and `status` are pure, except for lookups in the registry's memory and the issue of tokens. An object or
key that is missing, and not optional, is a ContainerConfigError. Pods, volumes and their sources are the API's JSON
objects. A new kind of volume: a case in `files`, and in `has_object` if it has the content of an object; a new kind of
source in a projected volume: a case in `_projected_files`, and in `has_object`.

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
GROUP_READABLE: Final = 0o040
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
    """The functions by which the content of volumes is read; `pod_worker` makes them of the registry.

    Attributes:
        find: finds ConfigMaps, Secrets and ClusterTrustBundles.
        list_trust_bundles: returns all ClusterTrustBundles.
        issue_token: issues tokens; None if the API server issues none.
    """

    find: FindObject
    list_trust_bundles: Callable[[], Iterable[Object]] = tuple
    issue_token: IssueToken | None = None


def files(
    volume: Mapping[str, Any], pod: Mapping[str, Any], placement: PodPlacement, sources: VolumeSources
) -> list[VolumeFile]:
    """The files of a configMap, secret, downwardAPI or projected volume. Raises ContainerConfigError.

    Args:
        volume: a core/v1 Volume of `pod`.
        placement: the addresses and the node of the pod, for the downward API.
    """
    if (source := volume.get("configMap")) is not None:
        return _object_files("ConfigMap", source, source.get("name", ""), pod, sources.find)
    if (source := volume.get("secret")) is not None:
        return _object_files("Secret", source, source.get("secretName", ""), pod, sources.find)
    if (source := volume.get("downwardAPI")) is not None:
        return _downward_api_files(source, pod, placement)
    if (source := volume.get("projected")) is not None:
        return _projected_files(source, pod, placement, sources)
    kinds = ", ".join(sorted(set(volume) - {"name"}))
    raise mount_error(f'volume "{volume["name"]}" is of a kind that this node does not have: {kinds}')


def has_object(volume: Mapping[str, Any], resource: str, name: str) -> bool:
    """Whether a volume has files of an object; for a ClusterTrustBundle, whether it may have some.

    Args:
        volume: a core/v1 Volume.
        resource: `configmaps`, `secrets` or TRUST_BUNDLES.
        name: the name of the object, which is in the namespace of the pod; ignored for TRUST_BUNDLES.
    """
    projections = (volume.get("projected") or {}).get("sources") or ()
    if resource == TRUST_BUNDLES:
        return any("clusterTrustBundle" in projection for projection in projections)
    source_field, name_field = ("secret", "secretName") if resource == "secrets" else ("configMap", "name")
    own_name = (volume.get(source_field) or {}).get(name_field)
    projected_names = [(projection.get(source_field) or {}).get("name") for projection in projections]
    return name in (own_name, *projected_names)


def token_file(source: Mapping[str, Any], pod: Mapping[str, Any], issue_token: IssueToken, mode: int) -> VolumeFile:
    """The file of a serviceAccountToken source, with a new token. Raises ContainerConfigError."""
    life_s = source.get("expirationSeconds") or TOKEN_LIFE_S
    try:
        token = issue_token(pod, source.get("audience") or "", life_s)
    except StatusError as error:
        raise mount_error(f"failed to fetch token: {error.message}") from error
    return VolumeFile(source["path"], token.encode(), mode)


def _projected_files(
    volume_source: Mapping[str, Any], pod: Mapping[str, Any], placement: PodPlacement, sources: VolumeSources
) -> list[VolumeFile]:
    """The files of all sources of a projected volume. Raises ContainerConfigError.

    Args:
        volume_source: a core/v1 ProjectedVolumeSource; its `defaultMode` is that of all its sources.
    """
    find, issue_token = sources.find, sources.issue_token
    default_mode = {"defaultMode": volume_source.get("defaultMode")}
    mode = _mode_or_default(volume_source.get("defaultMode"), DEFAULT_MODE)
    projected_files: list[VolumeFile] = []
    for projection in volume_source.get("sources") or []:
        if (source := projection.get("configMap")) is not None:
            projected_files += _object_files("ConfigMap", default_mode | source, source.get("name", ""), pod, find)
        elif (source := projection.get("secret")) is not None:
            projected_files += _object_files("Secret", default_mode | source, source.get("name", ""), pod, find)
        elif (source := projection.get("downwardAPI")) is not None:
            projected_files += _downward_api_files(default_mode | source, pod, placement)
        elif (source := projection.get("serviceAccountToken")) is not None and issue_token is not None:
            projected_files.append(token_file(source, pod, issue_token, mode))
        elif (source := projection.get("clusterTrustBundle")) is not None:
            projected_files.append(_trust_bundle_file(source, sources, mode))
        else:
            raise mount_error(f"this node cannot project {', '.join(projection)}")
    return projected_files


def _trust_bundle_file(source: Mapping[str, Any], sources: VolumeSources, mode: int) -> VolumeFile:
    """The file of a clusterTrustBundle source, with each certificate once. Raises ContainerConfigError."""
    if name := source.get("name"):
        bundle = sources.find(TRUST_BUNDLES, "", name)
        bundles = [] if bundle is None else [bundle]
        error_message = f'could not get ClusterTrustBundle "{name}"'
    else:
        signer, selector = source.get("signerName"), selectors.from_label_selector(source.get("labelSelector"))
        bundles = [
            trust_bundle
            for trust_bundle in sources.list_trust_bundles()
            if clustertrustbundle.signer_of(trust_bundle) == signer
            and selector.matches(trust_bundle["metadata"].get("labels") or {})
        ]
        error_message = f'no ClusterTrustBundles of the signer "{signer}" match the label selector'
    if not bundles and not source.get("optional"):
        raise mount_error(error_message)
    certificates = {
        block.data
        for trust_bundle in bundles
        for block in clustertrustbundle.pem_blocks(trust_bundle["spec"]["trustBundle"])
    }
    return VolumeFile(source["path"], b"".join(map(_pem_block, sorted(certificates))), mode)


def _pem_block(certificate: bytes) -> bytes:
    """A certificate (DER) as a PEM block."""
    lines = textwrap.wrap(base64.b64encode(certificate).decode(), PEM_LINE_CHARACTERS)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()


def _object_files(
    kind: str, source: Mapping[str, Any], name: str, pod: Mapping[str, Any], find: FindObject
) -> list[VolumeFile]:
    """The files of a ConfigMap or Secret; none if it is missing and optional. Raises ContainerConfigError.

    Args:
        kind: `ConfigMap` or `Secret`.
        source: the source in the volume: `items`, `optional` and `defaultMode` are read.
        name: the name of the object.
    """
    config_or_secret = find(f"{kind.lower()}s", pod["metadata"]["namespace"], name)
    if config_or_secret is None:
        if source.get("optional"):
            return []
        raise mount_error(f'{kind.lower()} "{name}" not found')
    if kind == "Secret":
        content = {key: references.decode_base64(value) for key, value in (config_or_secret.get("data") or {}).items()}
    else:
        content = {key: str(value).encode() for key, value in (config_or_secret.get("data") or {}).items()}
        binary_data = config_or_secret.get("binaryData") or {}
        content |= {key: references.decode_base64(value) for key, value in binary_data.items()}
    return _key_files(source, content, f"{kind} {name}")


def _key_files(source: Mapping[str, Any], content: Mapping[str, bytes], object_name: str) -> list[VolumeFile]:
    """The files of the keys in `items` of the source; those of all keys without `items`.

    Args:
        content: key of the ConfigMap or Secret -> content of its file.
        object_name: kind and name of the object, for the message of an error.

    Raises ContainerConfigError for a missing key, unless the source is optional.
    """
    mode = _mode_or_default(source.get("defaultMode"), DEFAULT_MODE)
    if not source.get("items"):
        return [VolumeFile(key, content[key], mode) for key in sorted(content)]
    key_files = []
    for key_to_path in source["items"]:
        key = key_to_path["key"]
        if key in content:
            key_files.append(
                VolumeFile(key_to_path["path"], content[key], _mode_or_default(key_to_path.get("mode"), mode))
            )
        elif not source.get("optional"):
            raise mount_error(f"references non-existent config key: {key} ({object_name})")
    return key_files


def _downward_api_files(source: Mapping[str, Any], pod: Mapping[str, Any], placement: PodPlacement) -> list[VolumeFile]:
    """The files of a downwardAPI volume or projection. Raises ContainerConfigError."""
    mode = _mode_or_default(source.get("defaultMode"), DEFAULT_MODE)
    return [
        VolumeFile(
            downward_file["path"],
            _downward_api_text(downward_file, pod, placement).encode(),
            _mode_or_default(downward_file.get("mode"), mode),
        )
        for downward_file in source.get("items") or []
    ]


def _downward_api_text(downward_file: Mapping[str, Any], pod: Mapping[str, Any], placement: PodPlacement) -> str:
    """The content of a core/v1 DownwardAPIVolumeFile. Raises ContainerConfigError."""
    try:
        if reference := downward_file.get("fieldRef"):
            return references.field_value(pod, reference["fieldPath"], placement)
        reference = downward_file.get("resourceFieldRef") or {}
        return references.resource_value(pod, reference, "", placement)  # it names its container itself
    except ContainerConfigError as error:
        raise mount_error(error.message) from error


def _mode_or_default(mode: int | None, default_mode: int) -> int:
    return default_mode if mode is None else mode


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
    parent_path, _, name = safe_path(file.path).rpartition("/")
    if name in ("", "."):
        raise mount_error(f'"{file.path}" is no path of a file')
    with _ensured_folder(folder, parent_path) as parent:
        draft = f"..{name[:DRAFT_NAME_CHARACTERS]}"  # no other file: paths that begin with `..` are not valid
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(draft, flags, 0o600, dir_fd=parent), "wb") as draft_file:
            draft_file.write(file.data)
            draft_file.flush()
            os.fchmod(draft_file.fileno(), file.mode | (GROUP_READABLE if group is not None else 0))
            if group is not None:
                os.fchown(draft_file.fileno(), -1, group)
        os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)


def write_changed(
    folder: Path, content: Sequence[VolumeFile], *, kept_paths: Collection[str], group: int | None
) -> None:
    """Write the files that differ into the volume at `folder`, and remove files that are not in `content`. Blocks.

    Args:
        kept_paths: paths of files that stay as they are, relative to the volume.
        group: as for `write`.

    Raises ContainerConfigError, OSError.
    """
    for file in content:
        if not _has_data(folder, file):
            write(folder, file, group=group)
    written_paths = [file.path for file in content]
    expected_paths = {os.path.normpath(path) for path in (*kept_paths, *written_paths)}
    for parent, _, file_names, parent_descriptor in os.fwalk(folder):
        for name in file_names:
            if os.path.relpath(os.path.join(parent, name), folder) not in expected_paths:
                os.unlink(name, dir_fd=parent_descriptor)


def _has_data(folder: Path, file: VolumeFile) -> bool:
    """Whether the volume at `folder` has the file with this content; a missing parent is created.

    False if it cannot be read. Raises ContainerConfigError, OSError.
    """
    parent_path, _, name = safe_path(file.path).rpartition("/")
    with _ensured_folder(folder, parent_path) as parent:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with open(os.open(name, flags, dir_fd=parent), "rb") as written_file:
                return written_file.read(len(file.data) + 1) == file.data  # one more byte shows a longer file
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
def _ensured_folder(folder: Path, path: str) -> Iterator[int]:
    """A descriptor of the directory at `path` within `folder`, which is created if it is missing. Raises OSError."""
    with openat2.opened_folder(str(folder)) as root:
        descriptor = openat2.make_beneath(root, path, FOLDER_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
