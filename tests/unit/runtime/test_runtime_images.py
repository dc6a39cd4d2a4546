"""The table of image names."""

import sys

import pytest

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
    assert images.resolve(image) == images.ImageCommand(("/bin/sh",), args_replace=True, brings_programs=True)


@pytest.mark.parametrize("image", ["", "localhost:5000/hpa-example", "registry.k8s.io/other", "hpa-example/busybox"])
def test_other_names_are_not_known(image: str) -> None:
    """A name that is not in the table stands for nothing."""
    assert images.resolve(image) is None
