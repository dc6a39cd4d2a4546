"""Scales that are known without asking: when they are, and when the server is asked nevertheless."""

from collections.abc import AsyncIterator

import pytest

from podscaler.kube.transport.transport import Response
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import APPS, DEPLOYMENTS, HPAS, refusal
from podscaler.testing.transport import TransportFailure

WEB_SCALE = f"{APPS}shop/deployments/web/scale"
SYNCS = {"action": "none", "error": "none"}


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """A world in which deployments can be followed."""
    made = AutoscalerWorld(lists_deployments=True)
    yield made
    await made.close()


async def _first_period(world: AutoscalerWorld, **web: object) -> None:
    """Let the first sync be over, which asks because the list of deployments has not come."""
    world.add_web(**web)  # type: ignore[arg-type]  # passed on as it is
    await world.start()
    await world.advance(14)
    world.cluster.requests.clear()


async def test_syncs_do_not_ask_for_what_is_followed(world: AutoscalerWorld) -> None:
    """After the first sync of the first autoscaler of a kind, no scale is asked for any more."""
    await _first_period(world)
    await world.advance(60)
    assert (world.scale_reads(), world.metric("reconciliations_total", **SYNCS)) == (0, 5)


async def test_another_autoscaler_of_the_kind_asks_nothing(world: AutoscalerWorld) -> None:
    """A kind is followed once for all autoscalers."""
    await _first_period(world)
    world.cluster.put_deployment("api", 2)
    world.cluster.put_autoscaler("api", spec("api", minimum=3), uid="u2")
    await world.advance(0)
    assert (world.scale_reads("api"), world.replicas("api"), len(world.cluster.asked("GET", DEPLOYMENTS))) == (0, 3, 0)


async def test_somebody_elses_scaling_is_seen(world: AutoscalerWorld) -> None:
    """A change of replicas by somebody else comes by the watch."""
    await _first_period(world)
    world.cluster.put_deployment("web", 20)
    await world.advance(15)
    assert (world.replicas(), world.scale_reads()) == (10, 0)


async def test_a_watch_behind_our_own_write_is_not_used(world: AutoscalerWorld) -> None:
    """Until the watch has brought our write back the scale is asked for: nothing is scaled twice."""
    await _first_period(world)
    world.cluster.hold_deployments = True
    world.cluster.put_autoscaler("web", spec(minimum=3))
    await world.advance(2)
    asked_while_behind = world.scale_reads()
    world.cluster.hold_deployments = False
    world.cluster.tell_deployment("web")
    await world.advance(30)
    assert (asked_while_behind, world.scale_reads(), len(world.cluster.asked("PUT", "web/scale"))) == (1, 1, 1)


async def test_a_stale_scale_conflicts_and_is_read_again(world: AutoscalerWorld) -> None:
    """A write with a scale that somebody else has changed unseen is refused, and repeated with the newest."""
    await _first_period(world)
    world.cluster.hold_deployments = True
    world.cluster.put_deployment("web", 2)
    world.cluster.put_autoscaler("web", spec(minimum=4))
    await world.advance(0.5)
    assert (world.replicas(), len(world.cluster.asked("PUT", "web/scale")), world.scale_reads()) == (4, 2, 1)


async def test_not_found_is_told_by_the_server(world: AutoscalerWorld) -> None:
    """A target that the watch does not know is asked for, and the server's words are the condition's."""
    await _first_period(world)
    world.cluster.put_autoscaler("gone", spec("gone"), uid="u2")
    await world.advance(0)
    conditions = world.cluster.collections[HPAS].objects["shop", "gone"]["status"]["conditions"]
    assert [(each["reason"], each["message"]) for each in conditions] == [
        (
            "FailedGetScale",
            'the HPA controller was unable to get the target\'s current scale: deployments.apps "gone" not found',
        )
    ]


async def test_without_permission_scales_are_asked_for(
    world: AutoscalerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Where deployments cannot be listed every sync asks; one line in the log says why."""
    refused = refusal(403, "Forbidden", 'deployments.apps is forbidden: User "x" cannot list resource')
    world.cluster.interfere("GET", DEPLOYMENTS, *[refused] * 99)
    await _first_period(world)
    await world.advance(60)
    warnings = [each.message for each in caplog.records if each.levelname == "WARNING" and "forbidden" in each.message]
    assert (world.scale_reads(), len(warnings)) == (4, 1)


@pytest.mark.parametrize("reply", [Response(500, {}, b"oops"), TransportFailure("EOF")], ids=["500", "EOF"])
async def test_while_the_watch_is_broken_scales_are_asked_for(
    world: AutoscalerWorld, reply: Response | TransportFailure
) -> None:
    """What was followed is not trusted while nothing arrives; when the watch is back, it is."""
    await _first_period(world)

    world.cluster.interfere("GET", DEPLOYMENTS, *[reply] * 6)
    world.cluster.end_watches("EOF")
    await world.advance(10)
    broken = world.scale_reads()
    await world.advance(60)
    recovered = world.scale_reads()
    await world.advance(60)
    assert (broken, world.scale_reads() - recovered) == (1, 0)
