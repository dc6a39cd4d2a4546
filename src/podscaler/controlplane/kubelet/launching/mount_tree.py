"""Makes the mounts of one container in the mount namespace of the launcher, and enters its root file system.

`launcher` calls `enter_mounts` with its plan. Rules:

1. A target that exists is mounted over. A target that does not exist is created without changing the machine's files:
   its deepest existing parent is covered by a tmpfs, in which all former entries are mounted again beside the new one.
   Inside a volume it is created in the volume.
2. Containers that share a volume can change it meanwhile: a path in a volume is opened once, without leaving the volume
   or following a symbolic link, and used by its descriptor.
3. A container's user may not search CLOSED on this machine, such as the home of `up`. CLOSED is covered by a tmpfs that
   has nothing but FOLDER, read-only.
4. The root file system of an image is never changed: an overlay keeps the files that the container writes in memory. It
   has the machine's /dev, /proc and /sys.

Like `openat2` it imports nothing of podscaler but from its own directory, as the launcher is a program of its own.

Source: mount_namespaces(7), mount(2).
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podscaler.controlplane.kubelet.launching import openat2
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import openat2

# the flags of linux/mount.h
MS_RDONLY = 1
MS_NOSUID = 2
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
KEPT_FLAGS = 2 | 4 | 8 | 1024 | 2048
"""nosuid, nodev, noexec, noatime, nodiratime: the same bits in statvfs and in mount(2)."""
ST_RELATIME = 4096
"""In statvfs; mount(2) has another bit for it, MS_RELATIME."""
MIRRORED_ENTRIES_MAX = 5000
"""Of a directory that is mirrored for a new mount point (rule 1): each entry is a mount of its own."""

_libc = ctypes.CDLL(None, use_errno=True)


class LaunchError(Exception):
    """The container could not be set up; the text is the message for its status."""


def check_result(result: int, failed_action: str) -> None:
    """Raise LaunchError if a call of libc has returned an error; its message begins with `failed_action`."""
    if result != 0:
        error_number = ctypes.get_errno()
        raise LaunchError(f"{failed_action}: {os.strerror(error_number)}" + (_privilege_hint(error_number)))


def _privilege_hint(error_number: int) -> str:
    return " (this machine does not allow private mounts)" if error_number in (errno.EPERM, errno.ENOSYS) else ""


def mount(source: str, target: str, fs_type: str, flags: int, options: str = "", *, shown_target: str = "") -> None:
    """mount(2); `shown_target` replaces the target in the message of an error. Raises LaunchError."""
    arguments = [os.fsencode(argument) or None for argument in (source, target, fs_type)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None)
    check_result(result, f"mounting {shown_target or target}")


def make_private() -> None:
    """Keep the mounts of this process's mount namespace from all others. Raises LaunchError."""
    mount("", "/", "", MS_REC | MS_PRIVATE)


class MountTree:
    """The mounts of one container.

    Args:
        scratch: an empty directory, on which a new root is built if need be.
        root: the folder of a root file system that the container may change; empty: it sees the machine's.
    """

    def __init__(self, scratch: str, root: str = "") -> None:
        self._scratch = os.path.realpath(scratch)
        self._image_root = root
        # the container's root; that of a container without an image becomes a mirror of `/`, if need be
        self._root = root
        self._private_folders: set[str] = set()  # paths made for this container, where entries can be created
        self._mount_points: list[str] = []

    def make_target(self, target: str, *, is_folder: bool) -> None:
        """Create the missing folder or file `target`, as `add` does (rule 1). Raises LaunchError, OSError."""
        self._make_mount_point(target, is_folder=is_folder)

    def add(self, source: int, target: str, *, read_only: bool) -> None:
        """Mount the folder or file with the descriptor `source`, which is closed then, at the absolute path `target`.

        Raises LaunchError, OSError.
        """
        mount_point = self._make_mount_point(target, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        covered = self._open_in_root(mount_point)
        mount(_path_of(source), _path_of(covered), "", MS_BIND | MS_REC, shown_target=target)
        if read_only:  # mount(2) ignores MS_RDONLY when it makes a bind mount; a remount must keep the other flags
            mounted = self._open_in_root(mount_point)
            statvfs_flags = os.statvfs(mounted).f_flag
            kept_flags = statvfs_flags & KEPT_FLAGS | (MS_RELATIME if statvfs_flags & ST_RELATIME else 0)
            remount_flags = MS_REMOUNT | MS_BIND | MS_RDONLY | kept_flags
            mount("", _path_of(mounted), "", remount_flags, shown_target=target)
            os.close(mounted)
        os.close(covered)
        os.close(source)
        self._mount_points.append(mount_point)

    def reveal(self, closed: str, source: int, folder: str) -> None:
        """Cover the folder `closed`, and mount the descriptor `source` at `folder`, its former path below (rule 3).

        Raises LaunchError, OSError.
        """
        if closed not in self._private_folders:
            os.close(self._cover_with_tmpfs(closed, 0o755))
            self._private_folders.add(closed)
        self.add(source, folder, read_only=True)

    def enter(self) -> None:
        """chroot(2) to the new root, if one was built."""
        if self._root:
            os.chroot(self._root)
            os.chdir("/")

    def _make_mount_point(self, target: str, *, is_folder: bool) -> str:
        """Return the path on this machine to mount on, created if need be (rule 1). Raises LaunchError, OSError."""
        path = self._root + self._resolve_target(target)
        if not os.path.lexists(path):
            path = self._make_path(path, is_folder=is_folder)
        if os.path.isdir(path) != is_folder:
            raise LaunchError(f"mounting {target}: it is {'no' if is_folder else 'a'} directory on this machine")
        return path

    def _resolve_target(self, target: str) -> str:
        """`target` with symbolic links resolved, relative to the container's root."""
        if not self._root:
            return os.path.realpath(target)
        return os.path.realpath(self._root + target).removeprefix(self._root) or "/"

    def _open_in_root(self, path: str) -> int:
        """Return a descriptor of `path`, which is below the container's root and has no symbolic links (rule 2)."""
        with openat2.opened_folder(self._root or "/") as root:
            return openat2.open_no_symlinks(root, path.removeprefix(self._root).lstrip("/") or ".")

    def _make_path(self, path: str, *, is_folder: bool) -> str:
        """Make a missing path, in a mirror of its parent folder unless entries can be created there.

        Returns the new path, which differs from `path` below a mirror of `/`.
        """
        parent = os.path.dirname(path)
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)
        *missing_folders, last_name = os.path.relpath(path, parent).split(os.sep)
        if not self._may_create_in(parent):
            parent = self._mirror_folder(parent)
        for name in missing_folders:
            self._make_entry(parent, name, is_folder=True)
            parent = os.path.join(parent, name)
            self._private_folders.add(parent)
        self._make_entry(parent, last_name, is_folder=is_folder)
        return os.path.join(parent, last_name)

    def _make_entry(self, parent: str, name: str, *, is_folder: bool) -> None:
        """Create an empty directory or file `name` in the folder `parent`."""
        folder = self._open_in_root(parent)
        if is_folder:
            os.mkdir(name, 0o755, dir_fd=folder)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder))
        os.close(folder)

    def _cover_with_tmpfs(self, folder: str, mode: int) -> int:
        """Mount an empty tmpfs on `folder`; returns its descriptor. Raises LaunchError, OSError."""
        covered = self._open_in_root(folder)
        mount("tmpfs", _path_of(covered), "tmpfs", MS_NOSUID, f"mode={mode:o}", shown_target=folder)
        mounted = self._open_in_root(folder)
        if os.fstat(mounted).st_dev == os.fstat(covered).st_dev:
            raise LaunchError(f"mounting {folder}: it was moved meanwhile")
        os.close(covered)
        return mounted

    def _may_create_in(self, folder: str) -> bool:
        """Whether entries can be created in `folder` without changing the machine's files (rules 1 and 4)."""
        if self._image_root or folder in self._private_folders:
            return True
        return any(folder == volume or folder.startswith(volume + "/") for volume in self._mount_points)

    def _mirror_folder(self, folder: str) -> str:
        """Cover `folder` by a tmpfs with the same entries, in which entries can be created; returns its path.

        A mirror of `/` is made at `scratch`, and becomes the container's root. Raises LaunchError, OSError.
        """
        names = os.listdir(folder)
        if len(names) > MIRRORED_ENTRIES_MAX:
            raise LaunchError(f"there is no room for a mount in {folder}: it has {len(names)} entries")
        covered_folder = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        mode = stat.S_IMODE(os.fstat(covered_folder).st_mode)
        mirror = self._scratch if folder == "/" else folder
        mirror_folder = self._cover_with_tmpfs(mirror, mode)
        for name in names:
            _mount_again(covered_folder, mirror_folder, name)
        os.close(covered_folder)
        os.close(mirror_folder)
        self._private_folders.add(mirror)
        if folder == "/":
            self._root = mirror
        return mirror


def overlay_root(scratch: str, root: str) -> str:
    """Mount an overlay over the folder `root`, whose changes are in memory, below `scratch` (rule 4); returns its path.

    Raises LaunchError, OSError.
    """
    if not os.path.isdir(root):
        raise LaunchError(f"the root file system of the image is no folder: {root}")
    mount("tmpfs", scratch, "tmpfs", MS_NOSUID, "mode=755")
    os.chdir(scratch)  # relative paths and a descriptor: a colon or comma in a path would separate options
    for folder in ("upper", "work", "root"):
        os.mkdir(folder, 0o755)
    lower = os.open(root, os.O_PATH | os.O_DIRECTORY)
    options = f"lowerdir={_path_of(lower)},upperdir=upper,workdir=work"
    mount("overlay", "root", "overlay", 0, options, shown_target=root)
    os.close(lower)
    return os.path.join(scratch, "root")


def _open_source(source: str, sub_path: str) -> int:
    """A descriptor of the folder or file `source`, or of `sub_path` within it (empty: `source` itself).

    Raises LaunchError, OSError.
    """
    if not sub_path:
        return openat2.open_folder(source)
    with openat2.opened_folder(source) as folder:
        try:
            return openat2.open_beneath(folder, sub_path)
        except OSError as error:
            message = f'the subPath "{sub_path}" cannot be opened within its volume: {error.strerror}'
            raise LaunchError(message) from error


def _path_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _mount_again(covered_folder: int, mirror_folder: int, name: str) -> None:
    """Create the entry `name` in `mirror_folder`, and mount that of `covered_folder` on it (both are descriptors)."""
    try:
        mode = os.stat(name, dir_fd=covered_folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=covered_folder), name, dir_fd=mirror_folder)
            return
        if stat.S_ISDIR(mode):
            os.mkdir(name, dir_fd=mirror_folder)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=mirror_folder))
    except FileNotFoundError:
        return  # removed since the directory was listed
    source, target = f"{_path_of(covered_folder)}/{name}", f"{_path_of(mirror_folder)}/{name}"
    mount(source, target, "", MS_BIND | MS_REC, shown_target=name)


def enter_mounts(plan: Mapping[str, Any]) -> None:
    """Make the mounts of the plan in the namespace of this process, and enter a new root if one was built.

    Raises LaunchError, OSError.
    """
    # a mount, such as one on /tmp, may cover the sources and the scratch directory: both are used before the mounts
    sources = [_open_source(volume_mount["source"], volume_mount["sub_path"]) for volume_mount in plan["mounts"]]
    root = overlay_root(plan["scratch"], plan["root"]) if plan["root"] else ""
    tree = MountTree(plan["scratch"], root)
    revealed = [(closed, _open_source(folder, ""), folder) for closed, folder in plan["revealed"]]
    for closed, source, folder in revealed:
        tree.reveal(closed, source, folder)
    targets = [volume_mount["target"] for volume_mount in plan["mounts"]]
    for source, target in zip(sources, targets, strict=True):
        is_nested = any(target.startswith(f"{parent.rstrip('/')}/") for parent in targets)
        if not is_nested:  # a nested target is created in the volume of its parent, when it is mounted
            tree.make_target(target, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
    for source, volume_mount in zip(sources, plan["mounts"], strict=True):
        tree.add(source, volume_mount["target"], read_only=volume_mount["read_only"])
    tree.enter()
