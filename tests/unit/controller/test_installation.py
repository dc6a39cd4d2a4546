"""Installations of podscaler among each other: whose writes are those of one's own group."""

import pytest

from podscaler.controller.coexistence import standby
from podscaler.controller.leaderelection.election import Election
from podscaler.controller.options import installation
from podscaler.testing.autoscaling import AutoscalerWorld

ELSEWHERE = installation.of_lease("podscaler-system", "podscaler-controller")
OTHER_NAME = installation.of_lease("kube-system", "podscaler-blue")
ALONE = installation.of_host("node-a")


def test_the_default_lease_is_podscaler() -> None:
    """The name under which every usual installation writes, and always did."""
    elected = Election()
    assert installation.of_lease(elected.namespace, elected.name) == "podscaler"


def test_names_differ_and_last() -> None:
    """Another Lease, no Lease, another host: another name; the same ones, the same name after a restart."""
    names = [ELSEWHERE, OTHER_NAME, ALONE, installation.of_host("node-b"), installation.UP, installation.MANAGER]
    assert (len(set(names)), ELSEWHERE, ALONE) == (len(names), "podscaler-21929f77", "podscaler-alone-66570ff0")


def test_the_api_server_makes_the_manager_of_the_user_agent() -> None:
    """It takes what stands before the first slash."""
    assert installation.user_agent(ALONE).partition("/")[0] == ALONE


@pytest.mark.parametrize(
    ("own", "writer", "replicas"),
    [
        pytest.param("podscaler", "podscaler", 4, id="the leader before us"),
        pytest.param("podscaler", ELSEWHERE, 2, id="one that elects by another Lease"),
        pytest.param("podscaler", ALONE, 2, id="one that takes no Lease"),
        pytest.param(ALONE, "podscaler", 2, id="we take no Lease, and one leads"),
        pytest.param(ELSEWHERE, ELSEWHERE, 4, id="our own group, by another Lease"),
        pytest.param("podscaler", installation.UP, 2, id="that of podscaler up"),
    ],
)
async def test_other_installations_are_other_controllers(own: str, writer: str, replicas: int) -> None:
    """While another installation writes statuses nothing is written, whichever began first."""
    world = AutoscalerWorld(other_controller=standby.REFUSE, field_manager=own)
    world.add_web(cpu="1000m", replicas=2)
    status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": None}
    world.cluster.report("web", status, manager=writer, at="2026-01-01T00:00:00Z")
    await world.start()
    await world.advance(1)
    written = world.replicas()
    await world.close()
    assert (written, len(world.controller.unready())) == (replicas, 0 if replicas == 4 else 1)
