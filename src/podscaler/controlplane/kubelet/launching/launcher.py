"""A program that sets up mounts, a cgroup, limits and a terminal, and then executes a container's program.

`kubelet.processes.processes` starts it as `python -I -S launcher.py PLAN REPORT [SOCKET]` for containers that need one
of these. Of podscaler it imports only `openat2`, from its own directory. It has the rights of `up` until the exec, so
its own environment is a fixed one, and the container's environment is passed to the exec only.

PLAN is the descriptor of a file with JSON, which `container_config._launcher_spec` makes: a new entry stands there,
here and in `carry_out`.

    argv, cwd, env     the program with its arguments, its working directory and its environment
    has_own_folder     whether cwd is a folder of the node, in place of which / is used where a mount covers it
    user, group, groups  the ids to change to, or null and []
    cgroup             the directory of the cgroup to join, or ""
    network, hostname  the network namespace to join and the host name in a UTS namespace, or "" for the machine's
    max_processes      RLIMIT_NPROC to set, or null
    mounts             [{"source", "sub_path", "target", "read_only"}]; parents before children
    revealed           [[CLOSED, FOLDER]]: folders that the program needs, below a closed folder (rule 4)
    scratch            an empty directory for a new root, needed where a target does not exist in `/`, and with root
    root               the folder with the root file system of the image, or "" (rule 5)
    tty                whether standard input is a terminal that becomes the controlling terminal
    enter              the pid of a running container whose namespaces are joined (exec), or 0; without mounts then
    trap               {"filter", "call"} of `seccomp.filter_plan`, or null; SOCKET is then the descriptor of the
                       socket to which the filter's listener is sent

An error is written to the descriptor REPORT, which is closed on exec. Rules for mounts:

1. They are made in a private mount namespace; an ordinary user also needs a user namespace, in which his id is kept.
2. A target that exists is mounted over. A target that does not exist is created without changing the machine's files:
   its deepest existing parent is covered by a tmpfs, in which all former entries are mounted again beside the new one.
   Inside a volume it is created in the volume.
3. Containers that share a volume can change it meanwhile: a path in a volume is opened once, without leaving the volume
   or following a symbolic link, and used by its descriptor.
4. A container's user may not search CLOSED on this machine, such as the home of `up`. CLOSED is covered by a tmpfs that
   has nothing but FOLDER, read-only.
5. The root file system of an image is never changed: an overlay keeps the files that the container writes in memory. It
   has the machine's /dev, /proc and /sys.

Source: mount_namespaces(7), user_namespaces(7), mount(2), setns(2).
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import stat
import sys
import termios
import warnings  # noqa: F401  os.execvpe imports it, when a mount of the container may already hide its file
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podscaler.controlplane.kubelet.launching import openat2
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import openat2

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000
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
"""Of a directory that is mirrored for a new mount point (rule 2): each entry is a mount of its own."""
LAUNCH_FAILED_STATUS = 128
"""The exit status of this program where the container could not be set up."""

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_NEW_LISTENER = 8
SECCOMP_WAIT_KILLABLE = 32
"""Only fatal signals interrupt a call whose notification was received; since Linux 5.19."""
INSTRUCTION_BYTES = 8
"""The size of struct sock_filter."""


class LaunchError(Exception):
    """The container could not be set up; the text is the message for its status."""


def check_result(result: int, failed_action: str) -> None:
    """Raise LaunchError if a call of libc has returned an error; its message begins with `failed_action`."""
    if result != 0:
        error_number = ctypes.get_errno()
        raise LaunchError(f"{failed_action}: {os.strerror(error_number)}" + (_hint(error_number)))


def _hint(error_number: int) -> str:
    return " (this machine does not allow private mounts)" if error_number in (errno.EPERM, errno.ENOSYS) else ""


def mount(source: str, target: str, fs_type: str, flags: int, options: str = "", *, shown_target: str = "") -> None:
    """mount(2); `shown_target` replaces the target in the message of an error. Raises LaunchError."""
    arguments = [os.fsencode(argument) or None for argument in (source, target, fs_type)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None)
    check_result(result, f"mounting {shown_target or target}")


def make_namespace() -> None:
    """Make the namespaces of rule 1. Raises LaunchError, OSError."""
    user, group = os.geteuid(), os.getegid()
    if user != 0 or _libc.unshare(CLONE_NEWNS) != 0:  # root in a container may lack the right, too
        check_result(_libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "making a mount namespace")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    mount("", "/", "", MS_REC | MS_PRIVATE)


def write(path: str, content: str) -> None:
    """Write to a file of /proc or a cgroup. Raises OSError."""
    with open(path, "w", encoding="ascii") as file:
        file.write(content)


class MountTree:
    """The mounts of one container.

    Args:
        scratch: an empty directory, on which a new root is built if need be.
        root: the folder of a root file system that the container may change; empty: it sees the machine's.
    """

    def __init__(self, scratch: str, root: str = "") -> None:
        self._scratch = os.path.realpath(scratch)
        self._root = self._image_root = root
        self._private_folders: set[str] = set()  # paths made for this container, where entries can be created
        self._mount_points: list[str] = []

    def make_target(self, target: str, *, is_folder: bool) -> None:
        """Create the missing folder or file `target`, as `add` does (rule 2). Raises LaunchError, OSError."""
        self._make_mount_point(target, is_folder=is_folder)

    def add(self, source: int, target: str, *, read_only: bool) -> None:
        """Mount the folder or file with the descriptor `source`, which is closed then, at the absolute path `target`.

        Raises LaunchError, OSError.
        """
        mount_point = self._make_mount_point(target, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        covered = self._open(mount_point)
        mount(_path_of(source), _path_of(covered), "", MS_BIND | MS_REC, shown_target=target)
        if read_only:  # mount(2) ignores MS_RDONLY when it makes a bind mount; a remount must keep the other flags
            mounted = self._open(mount_point)
            statvfs_flags = os.statvfs(mounted).f_flag
            kept_flags = statvfs_flags & KEPT_FLAGS | (MS_RELATIME if statvfs_flags & ST_RELATIME else 0)
            remount_flags = MS_REMOUNT | MS_BIND | MS_RDONLY | kept_flags
            mount("", _path_of(mounted), "", remount_flags, shown_target=target)
            os.close(mounted)
        os.close(covered)
        os.close(source)
        self._mount_points.append(mount_point)

    def reveal(self, closed: str, source: int, folder: str) -> None:
        """Cover the folder `closed`, and mount the descriptor `source` at `folder`, its former path below (rule 4).

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
        """Return the path on this machine to mount on, created if need be (rule 2). Raises LaunchError, OSError."""
        path = self._root + self._resolve(target)
        if not os.path.lexists(path):
            path = self._make_path(path, is_folder=is_folder)
        if os.path.isdir(path) != is_folder:
            raise LaunchError(f"mounting {target}: it is {'no' if is_folder else 'a'} directory on this machine")
        return path

    def _resolve(self, target: str) -> str:
        """`target` with symbolic links resolved, relative to the container's root."""
        if not self._root:
            return os.path.realpath(target)
        return os.path.realpath(self._root + target).removeprefix(self._root) or "/"

    def _open(self, path: str) -> int:
        """Return a descriptor of `path`, which is below the container's root and has no symbolic links (rule 3)."""
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
            parent = self._mirror(parent)
        for name in missing_folders:
            self._make_entry(parent, name, is_folder=True)
            parent = os.path.join(parent, name)
            self._private_folders.add(parent)
        self._make_entry(parent, last_name, is_folder=is_folder)
        return os.path.join(parent, last_name)

    def _make_entry(self, parent: str, name: str, *, is_folder: bool) -> None:
        """Create an empty directory or file `name` in the folder `parent`."""
        folder = self._open(parent)
        if is_folder:
            os.mkdir(name, 0o755, dir_fd=folder)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder))
        os.close(folder)

    def _cover_with_tmpfs(self, folder: str, mode: int) -> int:
        """Mount an empty tmpfs on `folder`; returns its descriptor."""
        covered = self._open(folder)
        mount("tmpfs", _path_of(covered), "tmpfs", MS_NOSUID, f"mode={mode:o}", shown_target=folder)
        mounted = self._open(folder)
        if os.fstat(mounted).st_dev == os.fstat(covered).st_dev:
            raise LaunchError(f"mounting {folder}: it was moved meanwhile")
        os.close(covered)
        return mounted

    def _may_create_in(self, folder: str) -> bool:
        """Whether entries can be created in `folder` without changing the machine's files (rules 2 and 5)."""
        if self._image_root or folder in self._private_folders:
            return True
        return any(folder == volume or folder.startswith(volume + "/") for volume in self._mount_points)

    def _mirror(self, folder: str) -> str:
        """Cover `folder` by a tmpfs with the same entries, in which entries can be created; returns its path."""
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
    """Mount an overlay over the folder `root`, whose changes are in memory, below `scratch` (rule 5); returns its path.

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


def enter_namespaces(pid: int) -> None:
    """Join the namespaces and the root of a running container. Raises LaunchError, OSError."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    for kind in ("user", "mnt"):
        path = f"/proc/{pid}/ns/{kind}"
        if os.stat(path).st_ino != os.stat(f"/proc/self/ns/{kind}").st_ino:
            descriptor = os.open(path, os.O_RDONLY)
            check_result(_libc.setns(descriptor, 0), f"joining the container's {kind} namespace")
            os.close(descriptor)
    os.fchdir(root)
    os.chroot(".")


def join_network(path: str, hostname: str) -> None:
    """Join the network namespace at `path`, with a host name of its own. Raises LaunchError, OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    check_result(_libc.setns(descriptor, CLONE_NEWNET), "joining the pod's network namespace")
    os.close(descriptor)
    check_result(_libc.unshare(CLONE_NEWUTS), "making a UTS namespace")
    encoded_name = hostname.encode()
    check_result(_libc.sethostname(encoded_name, ctypes.c_size_t(len(encoded_name))), "setting the host name")


def limit_processes(limit: int) -> None:
    """Set RLIMIT_NPROC of this process and its children, at most to the hard limit."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


class FilterProgram(ctypes.Structure):
    """struct sock_fprog of seccomp(2): the number of BPF instructions, and their bytes."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_trap(trap: Mapping[str, Any], socket_descriptor: int) -> None:
    """Install the seccomp filter `trap` of the plan, and send its listener through a socket.

    Raises LaunchError, OSError.
    """
    import socket  # not for every start: most containers have no trap

    code = bytes.fromhex(trap["filter"])
    program = FilterProgram(len(code) // INSTRUCTION_BYTES, code)
    check_result(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up privileges for good")
    seccomp_call, mode = ctypes.c_long(trap["call"]), ctypes.c_uint(SECCOMP_SET_MODE_FILTER)
    listener = _libc.syscall(seccomp_call, mode, SECCOMP_NEW_LISTENER | SECCOMP_WAIT_KILLABLE, ctypes.byref(program))
    if listener < 0:  # before Linux 5.19
        listener = _libc.syscall(seccomp_call, mode, SECCOMP_NEW_LISTENER, ctypes.byref(program))
    check_result(min(listener, 0), "installing the filter that translates ports")
    with socket.socket(fileno=socket_descriptor) as channel:
        socket.send_fds(channel, [b"\0"], [listener])
    os.close(listener)


def reset_signals() -> None:
    """Set ignored signals to their default action: a signal that `up` inherited as ignored stays so across exec."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def execute_program(plan: Mapping[str, Any]) -> None:
    """Change working directory and user, and execute the program; does not return.

    Raises LaunchError, OSError, ValueError for a zero byte in an argument or variable. The working directory is changed
    first: it may be below the data directory, which other users may not search.
    """
    try:
        os.chdir(plan["cwd"])
    except FileNotFoundError as error:
        if not plan["has_own_folder"]:
            raise LaunchError(f'the working directory "{plan["cwd"]}" does not exist on this machine') from error
        os.chdir("/")
    except OSError as error:
        raise LaunchError(f'the working directory "{plan["cwd"]}": {error.strerror}') from error
    if plan["user"] is not None:
        os.setgroups(plan["groups"])
        os.setgid(plan["group"])
        os.setuid(plan["user"])
    reset_signals()
    if plan["trap"]:
        listener_socket = int(sys.argv[3])
        install_trap(plan["trap"], listener_socket)
    program = plan["argv"][0]
    try:
        os.execvpe(program, plan["argv"], plan["env"])  # noqa: S606  running what the pod says is this program's purpose
    except FileNotFoundError as error:
        reason = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        raise LaunchError(f'exec: "{program}": {reason}') from error
    except OSError as error:
        reason = error.strerror or str(error)
        message = f'exec: "{program}": {reason[:1].lower()}{reason[1:]}'
        raise LaunchError(message + _closed_folder_hint(program, error)) from error


def _closed_folder_hint(program: str, error: OSError) -> str:
    """The remedy where this user may not search a folder above `program`; empty if that is not the cause.

    Args:
        error: the error of the exec.
    """
    path = os.path.realpath(program)
    if error.errno != errno.EACCES or "/" not in program:
        return ""
    while path != "/":
        parent = os.path.dirname(path)
        if not os.path.lexists(path) and os.path.isdir(parent) and not os.access(parent, os.X_OK):
            return (
                f": it is below {parent}, which user {os.geteuid()} may not search; use another program, or allow it "
                f"(chmod o+x {parent})"
            )
        path = parent
    return ""


def carry_out(plan: Mapping[str, Any]) -> None:
    """Set up the container as the plan (see the module) says, and execute its program; does not return.

    Paths of the machine (cgroup, network) are used before the mounts. Raises LaunchError, OSError, ValueError.
    """
    if plan["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if plan["cgroup"]:
        write(os.path.join(plan["cgroup"], "cgroup.procs"), "0")
    if plan["max_processes"] is not None:
        limit_processes(plan["max_processes"])
    if plan["network"]:
        join_network(plan["network"], plan["hostname"])
    if plan["enter"]:
        enter_namespaces(plan["enter"])
    elif plan["mounts"] or plan["revealed"] or plan["root"]:
        make_namespace()
        enter_mounts(plan)
    execute_program(plan)


def enter_mounts(plan: Mapping[str, Any]) -> None:
    """Make the mounts of the plan in the namespace of this process, and enter a new root if one was built.

    Raises LaunchError, OSError.
    """
    # a mount, such as one on /tmp, may cover the sources and the scratch directory, which are used before it
    sources = [_open_source(volume_mount["source"], volume_mount["sub_path"]) for volume_mount in plan["mounts"]]
    tree = MountTree(plan["scratch"], overlay_root(plan["scratch"], plan["root"]) if plan["root"] else "")
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


def main() -> None:
    """Read the plan and carry it out; an error is written to REPORT, and the exit status is LAUNCH_FAILED_STATUS."""
    plan_descriptor, report_descriptor = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(report_descriptor, False)
    try:
        with open(plan_descriptor, "rb") as file:
            plan = json.load(file)
        carry_out(plan)
    except (LaunchError, OSError, ValueError) as error:  # ValueError: a zero byte in an argument
        os.write(report_descriptor, str(error).encode("utf-8", "replace"))
        os._exit(LAUNCH_FAILED_STATUS)


if __name__ == "__main__":
    main()
