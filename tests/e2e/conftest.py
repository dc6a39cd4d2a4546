"""Fixtures: a running `up` for a module, one for a test alone, and whether there is a kubectl."""

from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import pytest
from up_process import KUBECTL, Up

import prerequisites


@pytest.fixture(scope="session", autouse=True)
def discovery_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What kubectl keeps of servers is kept for this run: an earlier one may have had a server on the same port."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECACHEDIR", str(tmp_path_factory.mktemp("kube-cache")))
        yield


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One running `up` for the tests of a module; each test uses names of its own."""
    instance = Up(tmp_path_factory.mktemp("up") / "data").start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@pytest.fixture(scope="module")
def ordinary_up() -> Iterator[Up]:
    """One running `up` of a user without privileges for the tests of a module; each test uses names of its own."""
    with ordinary_user.ordinary_up() as instance:
        yield instance


@pytest.fixture
def fresh_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` of the test's own, not yet started, which the test may kill."""
    instance = Up(tmp_path / "data")
    yield instance
    if instance.process is not None:
        instance.stop()


@pytest.fixture
def kubectl_present() -> None:
    """Skips where the machine has no kubectl."""
    if KUBECTL is None:
        prerequisites.KUBECTL.skip()
