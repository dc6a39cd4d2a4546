"""The images that this machine can run without a registry: a name stands for a built-in program.

The node asks `resolve` for every container. Tag and digest do not matter, and neither does a `docker.io/` or `library/`
prefix. A container's own `command` always wins, so any image with a command runs that command of this machine.

docs/pods.md has the table for users.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PROGRAMS = Path(__file__).parent.parent / "programs"


@dataclass(frozen=True, slots=True)
class ImageCommand:
    """What an image name stands for.

    Attributes:
        argv: the program and its arguments, used where the container gives no `command`.
        default_port: the TCP port that the program listens on, None for none. It obeys the environment variable PORT.
        env: environment that the image brings; the container's own variables win.
        brings_programs: whether it has the programs of `image_programs`.
        args_replace: a container's `args` stand in place of argv (as for an image with CMD alone), not after it (as for
            one with an ENTRYPOINT).
    """

    argv: tuple[str, ...]
    default_port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    args_replace: bool = False
    brings_programs: bool = False


def _program(name: str, *args: str) -> tuple[str, ...]:
    # -I -S: neither the user's environment nor site-packages are read, so that a pod starts in a tenth of a second.
    return (sys.executable, "-I", "-S", str(_PROGRAMS / name), *args)


_KNOWN: dict[str, ImageCommand] = {
    "registry.k8s.io/hpa-example": ImageCommand(_program("hpa_example.py"), default_port=80),
    "k8s.gcr.io/hpa-example": ImageCommand(_program("hpa_example.py"), default_port=80),
    "gcr.io/google_containers/hpa-example": ImageCommand(_program("hpa_example.py"), default_port=80),
    "registry.k8s.io/pause": ImageCommand(_program("pause.py")),
    "busybox": ImageCommand(("/bin/sh",), args_replace=True, brings_programs=True),
}


def known_images() -> Mapping[str, ImageCommand]:
    """The table: normalised image name (without tag and digest) -> what it stands for."""
    return dict(_KNOWN)


def resolve(image: str) -> ImageCommand | None:
    """What `image` (`[registry/]name[:tag][@digest]`) stands for, None for a name that is not in the table."""
    return _KNOWN.get(_normalised(image))


def _normalised(image: str) -> str:
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    for prefix in ("docker.io/", "index.docker.io/", "library/"):
        name = name.removeprefix(prefix)
    return name
