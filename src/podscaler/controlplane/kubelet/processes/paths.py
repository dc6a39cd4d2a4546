"""The paths of the node's files, below its data directory.

    instance                        the random id of the data directory, the mark of our processes
    node                            the node's name
    processes/CONTAINER_ID          the record of a container's main process (`process_records`)
    programs/                       programs of the image busybox (`images`)
    pods/UID/volumes/VOLUME/        the content of a volume
    pods/UID/work/CONTAINER/        the working directory of a container
    pods/UID/names/CONTAINER/       its resolv.conf and hosts file (`name_files`)
    pods/UID/roots/CONTAINER/       an empty directory, on which the launcher builds the container's root
    pods/UID/logs/CONTAINER/N.log   the log of its N-th restart (N.log.1: the older part)

`kubelet.node_agent` makes one `NodePaths`, which all parts of the node share. Only the owner may read the files (0700),
as logs and volumes hold secrets. Names are uids and DNS labels, which the API server has validated; a name that is not
that of one directory entry is an UnsafeName. Paths within volumes are joined by `volume_files` and `openat2`. A new
path: a line above, and a property or method of `NodePaths`.
"""

from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import PodscalerError


class UnsafeName(PodscalerError):
    """A uid, container or volume name that is not the name of one directory entry."""


def below(folder: Path, name: str) -> Path:
    """The path of the entry `name` of `folder`. Raises UnsafeName."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UnsafeName(f"{name!r} is not a file name")
    return folder / name


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The paths below `root`, which is `KubeletSettings.data_dir`."""

    root: Path

    @property
    def instance(self) -> Path:
        """File with the instance's id."""
        return self.root / "instance"

    @property
    def node_name(self) -> Path:
        """File with the node's name."""
        return self.root / "node"

    @property
    def process_records(self) -> Path:
        """Directory of process records."""
        return self.root / "processes"

    @property
    def programs(self) -> Path:
        """Directory of the programs of images."""
        return self.root / "programs"

    @property
    def pods(self) -> Path:
        """Directory with one directory for each pod, named by its uid."""
        return self.root / "pods"

    def pod(self, uid: str) -> Path:
        """The directory of a pod. Raises UnsafeName, as do the methods below."""
        return below(self.pods, uid)

    def volume(self, uid: str, name: str) -> Path:
        """The content of a volume."""
        return below(self.pod(uid) / "volumes", name)

    def work(self, uid: str, container: str) -> Path:
        """The working directory of a container."""
        return below(self.pod(uid) / "work", container)

    def name_files(self, uid: str, container: str) -> Path:
        """The directory of a container's resolv.conf and hosts file."""
        return below(self.pod(uid) / "names", container)

    def scratch(self, uid: str, container: str) -> Path:
        """An empty directory on which the launcher builds the container's root."""
        return below(self.pod(uid) / "roots", container)

    def logs(self, uid: str, container: str) -> Path:
        """Directory of a container's logs."""
        return below(self.pod(uid) / "logs", container)

    def log(self, uid: str, container: str, start_number: int) -> Path:
        """The log of the container's start with this number, which is its restart count then."""
        return self.logs(uid, container) / f"{start_number}.log"

    def make(self) -> None:
        """Make the directories that every node has. Blocks. Raises OSError."""
        for folder in (self.root, self.process_records, self.pods):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
