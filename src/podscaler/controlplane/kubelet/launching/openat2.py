"""Opens paths that must stay within a directory, whatever symbolic links containers create in it meanwhile.

`kubelet.volumes.volume_files`, `volumes` and `mount_tree` use it. A path is resolved once, relative to a descriptor;
callers use the descriptor that is returned (`/proc/self/fd/N`, `dir_fd`) and never the path again. The module imports
nothing of podscaler, as `mount_tree` is a part of the launcher, a program of its own, and imports it from its
directory.

Where the kernel has no openat2 (before Linux 5.6, other systems, some sandboxes) the components are opened one by one,
and no symbolic link is followed.

Source: openat2(2), RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS; kubelet's SafeMakeDir.
Differs: kubelet follows absolute symbolic links that end within the volume; here they are an error.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SYS_OPENAT2 = 437
"""The number of the system call, the same on every architecture."""
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_UNAVAILABLE = (errno.ENOSYS, errno.EPERM)
"""EPERM: a seccomp filter denies the system call."""
_AGAIN = (errno.EAGAIN, errno.EINTR)
"""EAGAIN: something was renamed meanwhile."""
_TRIES_MAX = 16
"""How often a call that fails with one of _AGAIN is made at most."""

_libc = ctypes.CDLL(None, use_errno=True)


def open_folder(path: str) -> int:
    """Open the directory (or file) at `path` (O_PATH), following symbolic links. Raises OSError."""
    return os.open(path, _O_PATH | os.O_CLOEXEC)


@contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """As `open_folder`; the descriptor is closed on leaving. Raises OSError."""
    folder = open_folder(path)
    try:
        yield folder
    finally:
        os.close(folder)


def open_beneath(folder: int, path: str) -> int:
    """Open `path` (relative, without `..`) within the directory `folder` (O_PATH), following symbolic links within it.

    Raises OSError: EXDEV or ELOOP where a symbolic link leads out of `folder`.
    """
    return _open_resolved(folder, path, _BENEATH | _NO_MAGICLINKS)


def open_no_symlinks(folder: int, path: str) -> int:
    """As `open_beneath`, but follow no symbolic link. Raises OSError: ELOOP where there is one."""
    return _open_resolved(folder, path, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)


def make_beneath(folder: int, path: str, mode: int) -> int:
    """As `open_beneath`, but create missing directories, each with exactly this mode; "": `folder`. Raises OSError."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    current = os.dup(folder)
    for index, name in enumerate(names):
        path_to_name = "/".join(names[: index + 1])  # from `folder`: a symbolic link may lead out of `current`
        try:
            next_folder = open_beneath(folder, path_to_name)
        except FileNotFoundError:
            _make_folder(current, name, mode)
            next_folder = open_beneath(folder, path_to_name)
        finally:
            os.close(current)
        current = next_folder
    return current


def _make_folder(parent: int, name: str, mode: int) -> None:
    """Make the folder `name` in the directory `parent` with exactly that mode, unless it exists. Raises OSError."""
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return  # created concurrently; a dangling symbolic link fails when it is opened
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def _open_resolved(folder: int, path: str, resolve: int) -> int:
    """A descriptor of a path below a folder, with the restrictions `resolve` of openat2. Raises OSError."""
    how = struct.pack("=QQQ", _O_PATH | os.O_CLOEXEC, 0, resolve)  # struct open_how: flags, mode, resolve
    error_number = errno.ENOSYS
    for _ in range(_TRIES_MAX if sys.platform == "linux" else 0):
        descriptor = _libc.syscall(_SYS_OPENAT2, folder, os.fsencode(path), how, ctypes.c_size_t(len(how)))
        if descriptor >= 0:
            return int(descriptor)
        error_number = ctypes.get_errno()
        if error_number not in _AGAIN:
            break
    if error_number in _UNAVAILABLE:
        return _open_by_components(folder, path)
    raise OSError(error_number, os.strerror(error_number), path)


def _open_by_components(folder: int, path: str) -> int:
    """As `_open_resolved` for kernels without openat2: components are opened one by one, symbolic links are refused."""
    if path.startswith("/") or ".." in path.split("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    current = os.dup(folder)
    for name in path.split("/"):
        try:
            next_entry = os.open(name or ".", _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
        finally:
            os.close(current)
        current = next_entry
        if stat.S_ISLNK(os.fstat(current).st_mode):
            os.close(current)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return current
