"""Where the node keeps its files, below the data directory of `up`.

    instance                        the random id that marks our processes
    node                            the node's name
    block                           the number of the last address block
    processes/CONTAINER_ID          the pid of a running container, and what proves that it is still that process
    programs/                       what the image busybox has and the machine may lack
    pods/UID/volumes/VOLUME/        contents of volumes
    pods/UID/work/CONTAINER/        the folder that a container starts in
    pods/UID/names/CONTAINER/       its resolv.conf and hosts file
    pods/UID/logs/CONTAINER/N.log   what its N-th start printed (N.log.1: before that)

Everything is for the owner alone (0700), as logs and volumes hold secrets. Names are uids and DNS labels, which the API
server has validated; one that is no name of a file all the same is an UnsafeName. Paths within volumes, which are
longer, are joined by `volume_files` and `beneath`.
"""

from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import PodscalerError


class UnsafeName(PodscalerError):
    """A name of a pod, container or volume that would lead to another folder."""


def below(folder: Path, name: str) -> Path:
    """The entry `name` of `folder`. Raises UnsafeName for what is no name of one entry."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UnsafeName(f"{name!r} is no name of a file")
    return folder / name


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The places below `root` (`<data dir>/node`)."""

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
    def block(self) -> Path:
        """File with the number of the last address block."""
        return self.root / "block"

    @property
    def processes(self) -> Path:
        """Folder of the records of running containers."""
        return self.root / "processes"

    @property
    def programs(self) -> Path:
        """Folder of programs that images bring."""
        return self.root / "programs"

    @property
    def pods(self) -> Path:
        """Folder with one folder for each pod, named by its uid."""
        return self.root / "pods"

    def pod(self, uid: str) -> Path:
        """Everything of one pod. Raises UnsafeName, as all that follow."""
        return below(self.pods, uid)

    def volume(self, uid: str, name: str) -> Path:
        """The content of a volume."""
        return below(self.pod(uid) / "volumes", name)

    def work(self, uid: str, container: str) -> Path:
        """The folder that a container starts in."""
        return below(self.pod(uid) / "work", container)

    def names(self, uid: str, container: str) -> Path:
        """The files by which a container finds names."""
        return below(self.pod(uid) / "names", container)

    def scratch(self, uid: str, container: str) -> Path:
        """An empty folder on which the launcher builds a root for the container."""
        return below(self.pod(uid) / "roots", container)

    def logs(self, uid: str, container: str) -> Path:
        """Folder of a container's logs."""
        return below(self.pod(uid) / "logs", container)

    def log(self, uid: str, container: str, start_number: int) -> Path:
        """The log of the container's start with this number (its restart count then)."""
        return self.logs(uid, container) / f"{start_number}.log"

    def make(self) -> None:
        """Make the folders that every node has."""
        for folder in (self.root, self.processes, self.pods):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
