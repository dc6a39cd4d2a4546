"""The program that sets up a container's mounts, cgroup, limits and terminal, and then executes its main program.

`kubelet.processes.processes` starts it as `python -I -S launcher.py PLAN REPORT [SOCKET]` for containers that need one
of these. Of podscaler it imports only `mount_tree`, from its own directory, and thereby `openat2`. It has the rights of
`podscaler up` until the exec, so its own environment is a fixed one, and the container's environment is passed to the
exec only.

PLAN is the descriptor of a file with JSON, which `container_config._launcher_spec` makes: a new entry stands there,
here and in `carry_out`.

    argv, cwd, env     the program with its arguments, its working directory and its environment
    has_own_folder     whether cwd is the folder that the node made for the container; if a mount covers it, / is used
    user, group, groups  the ids to change to, or null and []
    cgroup             the directory of the cgroup to join, or ""
    network, hostname  the network namespace to join and the host name in a UTS namespace, or "" for the machine's
    max_processes      RLIMIT_NPROC to set, or null
    mounts             [{"source", "sub_path", "target", "read_only"}]; parents before children
    revealed           [[CLOSED, FOLDER]]: of a folder that the user may not search, what the program needs of it
    scratch            an empty directory for a new root, needed where a target does not exist in `/`, and with root
    root               the folder with the root file system of the image, which is not changed, or ""
    tty                whether standard input is a terminal that becomes the controlling terminal
    enter              the pid of a running container whose namespaces are joined (exec), or 0; without mounts then
    trap               the seccomp filter that hands calls to the node, {"filter", "call"} of `seccomp.filter_plan`,
                       or null; SOCKET is then the descriptor of the socket to which the filter's listener is sent

An error is written to the descriptor REPORT, which is closed on exec.

Source: user_namespaces(7), setns(2), seccomp(2).
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import sys
import termios
import warnings  # noqa: F401  os.execvpe imports it, when a mount of the container may already hide its file
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podscaler.controlplane.kubelet.launching import mount_tree
    from podscaler.controlplane.kubelet.launching.mount_tree import LaunchError, check_result
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import mount_tree
    from mount_tree import LaunchError, check_result

# linux/sched.h
CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000
# linux/prctl.h and linux/seccomp.h
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_NEW_LISTENER = 8
SECCOMP_WAIT_KILLABLE = 32
"""Only fatal signals interrupt a call whose notification was received; since Linux 5.19."""
LAUNCH_FAILED_STATUS = 128
"""The exit status of this program where the container could not be set up."""
SHEBANG_MAX_BYTES = 256
"""What Linux reads of the first line of a script."""
INSTRUCTION_BYTES = 8
"""The size of struct sock_filter."""

_libc = ctypes.CDLL(None, use_errno=True)


def make_namespace() -> None:
    """Make a private mount namespace; an ordinary user also needs a user namespace, in which the user's id is kept.

    Raises LaunchError, OSError.
    """
    user, group = os.geteuid(), os.getegid()
    has_namespace = user == 0 and _libc.unshare(CLONE_NEWNS) == 0  # root in a container may lack the right
    if not has_namespace:
        check_result(_libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "making a mount namespace")
        write_kernel_file("/proc/self/setgroups", "deny")
        write_kernel_file("/proc/self/uid_map", f"{user} {user} 1")
        write_kernel_file("/proc/self/gid_map", f"{group} {group} 1")
    mount_tree.make_private()


def write_kernel_file(path: str, content: str) -> None:
    """Write to a file of /proc or a cgroup. Raises OSError."""
    with open(path, "w", encoding="ascii") as file:
        file.write(content)


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
    if listener < 0:
        check_result(listener, "installing the filter that translates ports")
    with socket.socket(fileno=socket_descriptor) as channel:
        socket.send_fds(channel, [b"\0"], [listener])
    os.close(listener)


def reset_signals() -> None:
    """Set ignored signals to their default action: a signal that `up` inherited as ignored stays so across exec."""
    for signal_number in signal.valid_signals():
        if signal.getsignal(signal_number) == signal.SIG_IGN:
            signal.signal(signal_number, signal.SIG_DFL)


def execute_program(plan: Mapping[str, Any]) -> None:
    """Change working directory and user, and execute the program; does not return.

    Raises LaunchError, OSError, ValueError for a zero byte in an argument or variable. The working directory is changed
    first: it may be below the data directory, which other users may not search.
    """
    try:
        if plan["root"] and not plan["has_own_folder"]:  # as container runtimes do; only this container sees it
            os.makedirs(plan["cwd"], mode=0o755, exist_ok=True)
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
    """The remedy where this user may not search a folder above the program or its interpreter; else empty."""
    if error.errno != errno.EACCES or "/" not in program:
        return ""
    interpreter = _interpreter_of(program)
    for subject, path in (("it", program), (f"its interpreter {interpreter}", interpreter)):
        if closed := _closed_folder_above(path):
            user = os.geteuid()
            remedy = f"use another program, or allow it (chmod o+x {closed})"
            return f": {subject} is below {closed}, which user {user} may not search; {remedy}"
    return ""


def _interpreter_of(program: str) -> str:
    """The interpreter in the first line of a script; empty if the program is no script, or cannot be read."""
    try:
        with open(program, "rb") as file:
            first_line = file.readline(SHEBANG_MAX_BYTES)
    except OSError:
        return ""
    words = first_line[2:].split() if first_line.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""


def _closed_folder_above(program: str) -> str:
    """The folder above the program that this user may not search; empty if there is none, or no program."""
    path = os.path.realpath(program or "/")
    while path != "/":
        parent = os.path.dirname(path)
        if not os.path.lexists(path) and os.path.isdir(parent) and not os.access(parent, os.X_OK):
            return parent
        path = parent
    return ""


def carry_out(plan: Mapping[str, Any]) -> None:
    """Set up the container as the plan (see the module) says, and execute its program; does not return.

    Paths of the machine (cgroup, network) are used before the mounts. Raises LaunchError, OSError, ValueError.
    """
    if plan["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if plan["cgroup"]:
        write_kernel_file(os.path.join(plan["cgroup"], "cgroup.procs"), "0")
    if plan["max_processes"] is not None:
        limit_processes(plan["max_processes"])
    if plan["network"]:
        join_network(plan["network"], plan["hostname"])
    if plan["enter"]:
        enter_namespaces(plan["enter"])
    elif plan["mounts"] or plan["revealed"] or plan["root"]:
        make_namespace()
        mount_tree.enter_mounts(plan)
    execute_program(plan)


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
