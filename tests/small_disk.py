"""A disk of a few megabytes for tests of what happens when it is full: a tmpfs, where the user may mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import prerequisites


@contextmanager
def mounted(place: Path, *, size: str) -> Iterator[Path]:
    """A tmpfs of that size at `place`; the test is skipped where it cannot be mounted."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        prerequisites.SMALL_DISK.skip()
    if done.returncode:
        prerequisites.SMALL_DISK.skip()
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # a failing test may have left files open


def fill(place: Path) -> Path:
    """A file there that takes all the space that is left."""
    path = place / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return path


def free_bytes(place: Path) -> int:
    """How much space is left there."""
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize
