"""The built-in images: the program of this machine that an image name stands for. There is no registry.

`image_map` calls `resolve` for names that it does not map itself, and makes `ImageCommand`s for those that it does. Tag
and digest are ignored, and so is a `docker.io/` or `library/` prefix. A container's own `command` always wins, so any
image with a command runs that command of this machine, unless it is the path of a program of the image (`/agnhost`).
`kubelet.startup` calls `write_programs`, which writes the programs that the images busybox and agnhost have and this
machine may lack, with the applets of the machine's busybox; their directory is the last one of the container's PATH, so
that the machine's own programs win.

docs/pods.md has the table for users.
"""

import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

BROUGHT_PROGRAMS: Final = ("wget", "nc")
"""The programs of `write_programs`; each is a module of `kubelet/programs`."""
BUSYBOX_TIMEOUT_S: Final = 5.0
_PROGRAMS: Final = Path(__file__).parent.parent / "programs"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImageCommand:
    """The program of this machine that stands for an image.

    Attributes:
        argv: the program and its arguments, used where the container has no `command`; empty: no entry point.
        default_port: the TCP port that the program listens on, None for none. The environment variable PORT changes it.
        env: environment variables of the image; the container's own variables win.
        brings_programs: whether its containers have what `write_programs` writes in PATH.
        args_replace: whether a container's `args` replace argv (an image with CMD alone) or follow it (ENTRYPOINT).
        default_args: the arguments that follow argv where the container has no `args` (CMD beside ENTRYPOINT).
        programs: path of a program in the image -> the command that runs in place of it.
        program_name: the name of the only program of the image: a `command` with this last part runs argv.
        root: the folder with the image's root file system; empty: containers see the machine's.
        user: the numeric id of the image's user, None for that of `up`.
        working_dir: empty for the default.
    """

    argv: tuple[str, ...]
    default_port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    args_replace: bool = False
    brings_programs: bool = False
    default_args: tuple[str, ...] = ()
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    program_name: str = ""
    root: str = ""
    user: int | None = None
    working_dir: str = ""

    @property
    def needs_interpreter(self) -> bool:
        """Whether its program is run by the Python that runs `up`."""
        return self.argv[:1] == (sys.executable,)

    def with_args(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """The command line of a container without `command`, and with these `args`."""
        if not args:
            return self.argv + self.default_args
        return self.replace_program(args) if self.args_replace else self.argv + args

    def replace_program(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """`command`, with its first word replaced by this machine's command where that is a program of the image."""
        if not command:
            return command
        if self.program_name and os.path.basename(command[0]) == self.program_name:
            return self.argv + command[1:]
        return self.programs.get(command[0], command[:1]) + command[1:]


def _program_command(name: str, *args: str) -> tuple[str, ...]:
    """The command line of a module of `kubelet/programs`, such as `pause.py`."""
    # -I -S: Python reads neither the user's environment nor site-packages, so that a pod starts in a tenth of a second.
    return (sys.executable, "-I", "-S", str(_PROGRAMS / name), *args)


def _e2e_images() -> dict[str, ImageCommand]:
    """The images of Kubernetes' end-to-end tests: name with registry -> program."""
    agnhost, consumer = _program_command("agnhost.py"), _program_command("agnhost.py", "resource-consumer")
    registries = ("registry.k8s.io/e2e-test-images", "gcr.io/k8s-staging-e2e-test-images")
    image_commands = {
        "agnhost": ImageCommand(
            agnhost,
            default_args=("pause",),
            programs={"/agnhost": agnhost, "/agnhost-2": agnhost},
            brings_programs=True,
        ),
        "resource-consumer": ImageCommand(consumer, programs={"/consumer": consumer}),
        "busybox": _BUSYBOX,
    }
    return {f"{registry}/{name}": image for registry in registries for name, image in image_commands.items()}


def busybox_image(bash: str | None, busybox: str | None) -> ImageCommand:
    """The image busybox, whose shell is the first of these that is installed (None: it is not), or else /bin/sh.

    Bash keeps environment variables whose names no shell can use (`data-1`, a key of a ConfigMap), as busybox 1.37
    does, while earlier ones and dash drop them. Both have `[[`, which scripts for busybox use.

    Args:
        bash, busybox: paths of the programs.
    """
    if bash is not None:
        shell: tuple[str, ...] = (bash, "--posix")
    elif busybox is not None:
        shell = (busybox, "sh")
    else:
        return ImageCommand(("/bin/sh",), args_replace=True, brings_programs=True)
    return ImageCommand(shell, args_replace=True, brings_programs=True, programs={"/bin/sh": shell, "sh": shell})


MACHINE_BUSYBOX: Final = shutil.which("busybox")
_BUSYBOX: Final = busybox_image(shutil.which("bash"), MACHINE_BUSYBOX)
_HPA_EXAMPLE: Final = ImageCommand(_program_command("hpa_example.py"), default_port=80)
_BUILT_IN_IMAGES: Final[Mapping[str, ImageCommand]] = {
    "registry.k8s.io/hpa-example": _HPA_EXAMPLE,
    "k8s.gcr.io/hpa-example": _HPA_EXAMPLE,
    "gcr.io/google_containers/hpa-example": _HPA_EXAMPLE,
    "registry.k8s.io/pause": ImageCommand(_program_command("pause.py")),
    "podscaler": ImageCommand((sys.executable, "-m", "podscaler")),
    "busybox": _BUSYBOX,
    **_e2e_images(),
}
"""Image name without tag, digest and default registry -> program. A new image is an entry here and in docs/pods.md."""


def closed_folders(may_search: Callable[[Path], bool]) -> tuple[tuple[str, str], ...]:
    """The folders of the interpreter and of podscaler that are below a folder which a container's user may not search.

    Returns pairs (closed, folder): the topmost folder that may not be searched, and the folder below it. Blocks.

    Args:
        may_search: whether a container's user may search a folder of this machine.
    """
    source_folder = Path(__file__).parents[4]  # that of the package podscaler
    folders = dict.fromkeys(Path(path).resolve() for path in (sys.base_prefix, sys.prefix, source_folder))
    closed_pairs = []
    for folder in folders:
        closed = next((parent for parent in reversed(folder.parents) if not may_search(parent)), None)
        if closed is not None:
            closed_pairs.append((str(closed), str(folder)))
    return tuple(closed_pairs)


def resolve(image: str) -> ImageCommand | None:
    """The command of `image` (`[registry/]name[:tag][@digest]`), None for a name that is not in the table."""
    return _BUILT_IN_IMAGES.get(without_default_registry(without_tag(image)))


def without_tag(image: str) -> str:
    """An image name without tag and digest."""
    name, _, _digest = image.partition("@")
    folder, slash, last_part = name.rpartition("/")  # a colon in the folder is that of a registry's port
    base_name, _, _tag = last_part.partition(":")
    return f"{folder}{slash}{base_name}"


def without_default_registry(image: str) -> str:
    """An image name without the registry and folder that it has by default."""
    for prefix in ("docker.io/", "index.docker.io/", "library/"):
        image = image.removeprefix(prefix)
    return image


def write_programs(folder: Path, busybox: str | None = None) -> None:
    """Write BROUGHT_PROGRAMS as executable files into `folder`, for the user of `up` alone. Blocks. Raises OSError.

    Args:
        busybox: the path of this machine's busybox, whose other applets (such as `nslookup`) are linked there too;
            None: there is none.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    if busybox is not None:
        for name in _busybox_applets(busybox) - {*BROUGHT_PROGRAMS}:
            (folder / name).symlink_to(busybox)
    for name in BROUGHT_PROGRAMS:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(_program_command(f"{name}.py"))} "$@"\n', encoding="utf-8")
        script.chmod(0o700)


def _busybox_applets(busybox: str) -> set[str]:
    """The names of a busybox's applets; none, with a warning in the log, if it does not list them. Raises OSError."""
    try:
        completed = subprocess.run(  # noqa: S603 - a program of this machine's PATH, with one constant argument
            [busybox, "--list"], capture_output=True, text=True, timeout=BUSYBOX_TIMEOUT_S, check=True
        )
    except subprocess.SubprocessError as error:
        _log.warning("the applets of %s are not in the images busybox and agnhost: %s", busybox, error)
        return set()
    return {name for name in completed.stdout.split() if name == os.path.basename(name)}
