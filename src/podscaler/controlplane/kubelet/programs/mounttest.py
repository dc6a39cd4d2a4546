"""`agnhost mounttest`: writes files and prints contents, owners, modes and file systems, as its flags say, then ends.

`programs.agnhost` calls `main`; a test reads the files of a pod's volumes, as the pod has them, in the pod's log.

Source: test/images/agnhost/mounttest of Kubernetes v1.37 (flags, their order, texts).
Differs: file systems are named as in mountinfo, all of them; upstream prints numbers for most.
"""

import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser

INITIAL_CONTENT: Final = "mount-tester new file\n"
PAUSE_S: Final = 2
MOUNTS: Final = Path("/proc/self/mountinfo")
NEW_FILE_MODES: Final = ("0644", "0666", "0660", "0777")
"""The modes for which there is a flag new_file_MODE."""
_KIND_LETTERS: Final = (
    (stat.S_ISDIR, "d"),
    (stat.S_ISBLK, "D"),
    (stat.S_ISFIFO, "p"),
    (stat.S_ISSOCK, "S"),
    (stat.S_ISCHR, "Dc"),
)
"""The kinds of files with Go's letters."""
_BIT_LETTERS: Final = ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t"))


def mode_text(mode: int) -> str:
    """A mode as Go prints it: `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`."""
    letters = "".join(letter for is_kind, letter in _KIND_LETTERS if is_kind(mode))
    letters += "".join(letter for bit, letter in _BIT_LETTERS if mode & bit)
    return (letters or "-") + stat.filemode(mode & 0o777)[1:]


def file_system(path: str, mounts: str) -> str:
    """The type of the file system at `path`; empty if none is mounted above it.

    Args:
        mounts: the text of mountinfo. The deepest mount above `path` counts, of several the last one.
    """
    resolved_path, found_type, found_depth = Path(path).resolve(), "", -1
    for line in mounts.splitlines():
        # mount id, parent id, device, root, mount point, options - file system type, source, options
        mount_fields, _, fs_fields = line.partition(" - ")
        mount_point = Path(mount_fields.split(" ")[4].replace("\\040", " "))
        depth = len(mount_point.parts)
        if depth >= found_depth and resolved_path.is_relative_to(mount_point):
            found_type, found_depth = fs_fields.split(" ")[0], depth
    return found_type


def print_content(path: str) -> str:
    """Print and return the content of a file. Raises OSError."""
    content = Path(path).read_text(encoding="utf-8", errors="replace")
    print(f"content of file {json.dumps(path)}: {content}", flush=True)
    return content


def _print_file_system(path: str) -> None:
    fs_type = file_system(path, MOUNTS.read_text(encoding="utf-8", errors="replace"))
    print(f"mount type of {json.dumps(path)}: {fs_type}")


def _print_mode(path: str) -> None:
    print(f"mode of file {json.dumps(path)}: {mode_text(os.stat(path).st_mode)}")


def _print_permissions(path: str) -> None:
    print(f"perms of file {json.dumps(path)}: {mode_text(os.stat(path).st_mode & 0o777)}")


def _print_owner(path: str) -> None:
    status = os.stat(path)
    print(f"owner UID of {json.dumps(path)}: {status.st_uid}\nowner GID of {json.dumps(path)}: {status.st_gid}")


def _file_writer(mode: int) -> Callable[[str], None]:
    """The function that writes a new file with that mode at a path, and prints its content."""

    def write(path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(path, flags, mode), "w", encoding="utf-8") as file:
            file.write(INITIAL_CONTENT)
        print_content(path)

    return write


def print_repeatedly(path: str, tries: int, until_expected: bool, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Print the content of a file every PAUSE_S seconds; returns whether the last read succeeded.

    Args:
        tries: how often it is read at most.
        until_expected: whether it ends when the content is that of a new file.
    """
    is_readable = True
    for _ in range(tries):
        try:
            content = print_content(path)
        except OSError as failure:
            is_readable = False
            print(f"Error reading file {path}: {failure}, retrying", flush=True)
        else:
            is_readable = True
            if until_expected and content == INITIAL_CONTENT:
                break
            if until_expected:
                print(f"Unexpected content. Expected: {INITIAL_CONTENT}. Retrying", flush=True)
        sleep(PAUSE_S)
    return is_readable


def main(args: Sequence[str]) -> int:
    """Carry out the actions of the flags, in a fixed order; returns 1 where one of them failed.

    A new flag: an entry of `actions`, whose value is a path.
    """
    actions: dict[str, Callable[[str], object]] = {"fs_type": _print_file_system}
    actions |= {f"new_file_{mode}": _file_writer(int(mode, 8)) for mode in NEW_FILE_MODES}
    actions |= {"file_mode": _print_mode, "file_perm": _print_permissions, "file_owner": _print_owner}
    actions["file_content"] = print_content
    parser = ArgumentParser(prog="mounttest")
    for name in (*actions, "file_content_in_loop"):
        parser.add_flag(name, "")
    parser.add_flag("retry_time", 180)
    parser.add_flag("break_on_expected_content", True)
    options = parser.parse_args(args)
    os.umask(0)
    status = 0
    for name, action in actions.items():
        path = getattr(options, name)
        try:
            if path:
                action(path)
        except OSError as failure:
            print(f"error of {name} {json.dumps(path)}: {failure}")
            status = 1
    path = options.file_content_in_loop
    tries = -(-options.retry_time // PAUSE_S)  # rounded up
    if path and not print_repeatedly(path, tries, options.break_on_expected_content):
        status = 1
    return status
