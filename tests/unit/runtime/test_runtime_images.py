"""The table of image names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import prerequisites
from podscaler.controlplane.kubelet.launching import images


@pytest.mark.parametrize(
    "image",
    [
        "registry.k8s.io/hpa-example",
        "registry.k8s.io/hpa-example:latest",
        "registry.k8s.io/hpa-example@sha256:1234",
        "registry.k8s.io/hpa-example:1.0@sha256:1234",
    ],
)
def test_tag_and_digest_do_not_matter(image: str) -> None:
    """The same program is found under every tag and digest of a known name."""
    command = images.resolve(image)
    assert command is not None
    assert (command.argv[0], command.default_port) == (sys.executable, 80)


@pytest.mark.parametrize("image", ["busybox", "busybox:1.36", "docker.io/library/busybox", "library/busybox:latest"])
def test_the_default_registry_may_be_left_out(image: str) -> None:
    """Names of the default registry are known with and without it."""
    assert images.resolve(image) == images.busybox_image(shutil.which("bash"), shutil.which("busybox"))


@pytest.mark.parametrize(
    ("bash", "busybox", "shell"),
    [
        pytest.param("/bin/bash", "/bin/busybox", ("/bin/bash", "--posix"), id="bash"),
        pytest.param(None, "/bin/busybox", ("/bin/busybox", "sh"), id="busybox"),
        pytest.param(None, None, ("/bin/sh",), id="neither"),
    ],
)
def test_the_shell_of_busybox_is_the_machines(bash: str | None, busybox: str | None, shell: tuple[str, ...]) -> None:
    """It runs for the image and for the path of the shell in it, as command and as arguments."""
    image = images.busybox_image(bash, busybox)
    script = ("/bin/sh", "-c", "a")
    assert (image.argv, image.replace_program(script), image.with_args(script)) == (
        shell,
        (*shell, "-c", "a"),
        (*shell, "-c", "a"),
    )


@prerequisites.BASH.mark(is_there=shutil.which("bash") is not None)
def test_the_shell_of_busybox_keeps_all_variables() -> None:
    """A key of a ConfigMap is a variable that a shell cannot name; its programs get it nevertheless."""
    image = images.resolve("busybox")
    assert image is not None
    command = image.with_args(("sh", "-c", "env"))
    found = subprocess.run(command, env={"data-1": "x", "PATH": os.defpath}, capture_output=True, text=True, check=True)
    assert "data-1=x\n" in found.stdout


@pytest.mark.parametrize("image", ["", "localhost:5000/hpa-example", "registry.k8s.io/other", "hpa-example/busybox"])
def test_other_names_are_not_known(image: str) -> None:
    """A name that is not in the table stands for nothing."""
    assert images.resolve(image) is None


@pytest.mark.parametrize(
    ("command", "replaced"),
    [
        pytest.param(("/agnhost", "netexec"), ("python3", "a.py", "netexec"), id="program of the image"),
        pytest.param(("/bin/sh", "-c", "ls"), ("/bin/sh", "-c", "ls"), id="program of the machine"),
        pytest.param((), (), id="no command"),
    ],
)
def test_programs_of_an_image(command: tuple[str, ...], replaced: tuple[str, ...]) -> None:
    """The path of a program of the image stands for the program that is built in."""
    image = images.ImageCommand(("/agnhost",), programs={"/agnhost": ("python3", "a.py")})
    assert image.replace_program(command) == replaced


@pytest.mark.parametrize(
    ("image", "args", "line"),
    [
        pytest.param("registry.k8s.io/e2e-test-images/agnhost", (), ["pause"], id="default of agnhost"),
        pytest.param("registry.k8s.io/e2e-test-images/agnhost", ("netexec",), ["netexec"], id="subcommand"),
        pytest.param(
            "registry.k8s.io/e2e-test-images/resource-consumer:1.14",
            ("-port=1",),
            ["resource-consumer", "-port=1"],
            id="consumer",
        ),
    ],
)
def test_arguments_of_an_image(image: str, args: tuple[str, ...], line: list[str]) -> None:
    """Arguments replace the default ones and follow the program."""
    command = images.resolve(image)
    assert command is not None
    assert list(command.with_args(args)[4:]) == line


@pytest.mark.parametrize("image", ["podscaler", "podscaler:0.1.0", "docker.io/library/podscaler@sha256:1234"])
def test_the_image_of_the_chart_is_the_program_that_runs(image: str) -> None:
    """The chart's image stands for the running podscaler."""
    found = images.resolve(image)
    assert found is not None
    assert found.with_args(("controller",)) == (sys.executable, "-m", "podscaler", "controller")


def test_folders_below_a_closed_one() -> None:
    """The folders of the interpreter are listed with the first folder above that a user may not search."""
    prefix = Path(sys.base_prefix).resolve()
    closed = prefix.parents[0]
    found = images.closed_folders(lambda folder: folder != closed)
    assert (str(closed), str(prefix)) in found
    assert images.closed_folders(lambda folder: True) == ()
