"""Fixtures: a stage on each control plane, kept for the session, and a scene on it for each test."""

import os
import re
from collections.abc import Iterator

import planes
import pytest
from planes import await_ready
from several_controllers import Controllers
from stage import Scene, Stage, end, staged

import prerequisites


@pytest.fixture(scope="session")
def embedded_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage on `podscaler up`."""
    folder = tmp_path_factory.mktemp("embedded")
    with planes.embedded(folder) as plane, staged(plane, folder) as stage:
        yield stage


@pytest.fixture(scope="session")
def real_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage on a real control plane; skips where there is none."""
    folder = tmp_path_factory.mktemp("real")
    with planes.real(folder) as plane, staged(plane, folder) as stage:
        yield stage


@pytest.fixture(scope="session")
def upstream_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage on a real control plane with the built-in controller: what is expected of ours holds for it, too."""
    folder = tmp_path_factory.mktemp("upstream")
    with planes.real(folder) as plane, staged(plane, folder, is_built_in=True) as stage:
        yield stage


REAL = [pytest.param(name, marks=pytest.mark.real) for name in ("real", "upstream")]


@pytest.fixture(params=["embedded", *REAL[: 2 if "SCENARIOS_UPSTREAM" in os.environ else 1]])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Both control planes; with SCENARIOS_UPSTREAM also upstream as a whole, which checks the expectations."""
    found: Stage = request.getfixturevalue(f"{request.param}_stage")
    return found


@pytest.fixture
def ours(stage: Stage) -> None:
    """For what the built-in controller cannot do."""
    if stage.is_built_in:
        prerequisites.OUR_CONTROLLER.skip()


@pytest.fixture
def scene(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A namespace of the test's own, which is deleted afterwards."""
    await_ready(stage.api)
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-60:].strip("-")
    found = stage.namespace(name)
    yield found
    await_ready(stage.api)
    stage.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def controllers(stage: Stage, ours: None) -> Iterator[Controllers]:
    """Controllers of the test's own."""
    assert stage.controller is not None
    end(stage.controller)
    found = Controllers(stage)
    yield found
    found.close()
    stage.controller = stage.spawn()
