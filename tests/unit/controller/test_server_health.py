"""Faults that concern every sync: one line when they begin, one when they end, and what /readyz and metrics have."""

import logging
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response, TransportError
from podscaler.testing import VirtualClock
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import HPAS, refusal
from podscaler.testing.transport import ScriptedTransport, TransportFailure

AUTOSCALERS = 40
CAUSE = "dial tcp 10.0.0.1:443: connect: connection refused"
SERVER = "the API server https://10.0.0.1:443"
CALLER = "the given configuration"
REFUSAL = (
    f"{SERVER} does not accept the credentials of {CALLER} any more (401 Unauthorized): nothing is scaled until it "
    "does; renew them"
)


@pytest.fixture
async def world(caplog: pytest.LogCaptureFixture) -> AsyncIterator[AutoscalerWorld]:
    """Forty autoscalers that are looked at in peace, and the log from then on."""
    made = AutoscalerWorld(lists_deployments=True)
    for number in range(AUTOSCALERS):
        made.cluster.put_deployment(f"t{number}", 1)
        made.cluster.put_pod(f"t{number}-0", f"t{number}", "500m")
        made.cluster.put_autoscaler(f"t{number}", spec(f"t{number}"), uid=f"u{number}")
    await made.start()
    await made.clock.advance(31, turns=40)
    caplog.set_level(logging.INFO)
    caplog.clear()
    yield made
    await made.close()


def fault(world: AutoscalerWorld, name: str) -> float | None:
    """The metric."""
    return world.controller.telemetry.registry.get_sample_value("podscaler_api_server_fault", {"fault": name})


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log has."""
    return [record.getMessage() for record in caplog.records]


async def test_an_outage_is_two_lines(world: AutoscalerWorld, caplog: pytest.LogCaptureFixture) -> None:
    """One when it begins, with server and cause, one when it ends, with its length and the syncs that failed."""
    world.cluster.fail(TransportFailure(CAUSE))
    await world.clock.advance(16, turns=40)
    during = fault(world, "unreachable")
    world.cluster.recover()
    await world.clock.advance(40, turns=40)
    begun, ended = lines(caplog)
    assert begun == f"{SERVER} of {CALLER} does not answer: {CAUSE}; syncs fail until it does"
    assert ended.startswith(f"{SERVER} answers again, after ")
    assert int(ended.split("in which ")[1].split()[0]) >= AUTOSCALERS
    assert (during, fault(world, "unreachable"), world.controller.unready()) == (1, 0, [])


async def test_a_watch_behind_our_writes(world: AutoscalerWorld, caplog: pytest.LogCaptureFixture) -> None:
    """While the watch of autoscalers is late, as after an outage, those skipped for that are counted and not logged."""
    for number in range(AUTOSCALERS):
        world.cluster.usage["shop", f"t{number}-0"] = "510m"
    world.cluster.collections[HPAS].watchers = []
    await world.clock.advance(31, turns=40)
    skips = world.metric("stale_sync_skips_total", group="autoscaling", resource="horizontalpodautoscalers")
    assert ((skips or 0) >= AUTOSCALERS, lines(caplog)) == (True, [])


async def test_dead_credentials(world: AutoscalerWorld, caplog: pytest.LogCaptureFixture) -> None:
    """One sentence with whose credentials they are, again every five minutes, and one when they are accepted again."""
    world.cluster.fail(refusal(401, "Unauthorized", "Unauthorized"))
    await world.clock.advance(320, turns=40)
    during = lines(caplog), world.controller.unready(), fault(world, "unauthorized")
    caplog.clear()
    world.cluster.recover()
    await world.clock.advance(40, turns=40)
    [ended] = lines(caplog)
    assert during == ([REFUSAL] * 2, [REFUSAL], 1)
    assert ended.startswith(f"{SERVER} accepts the credentials of {CALLER} again, after 3")
    assert (fault(world, "unauthorized"), world.controller.unready()) == (0, [])


async def test_a_metrics_api_that_refuses(world: AutoscalerWorld, caplog: pytest.LogCaptureFixture) -> None:
    """A 401 of a metrics API is none of the API server: syncs say so each, and the controller is ready."""
    world.cluster.fail(refusal(401, "Unauthorized", "no"), below="/apis/metrics.k8s.io/")
    await world.clock.advance(16, turns=40)
    assert (len(lines(caplog)) >= AUTOSCALERS, world.controller.unready()) == (True, [])


def a_health() -> tuple[ServerHealth, VirtualClock]:
    """One that has seen an answer, and its clock."""
    clock = VirtualClock()
    made = ServerHealth(Client(ScriptedTransport(), clock), clock, CollectorRegistry())
    made.note_response(0, "/api", 200)
    return made, clock


async def test_one_request_without_an_answer() -> None:
    """A request that fails while others that were begun later are answered is no outage: its sync reports it."""
    health, clock = a_health()
    error = TransportError(Request("GET", "/api"), server="", cause="timeout")
    await clock.advance(60)
    health.note_response(59, "/api", 200)
    health.note_no_response(0, error)
    alone = health.explains_failures
    health.note_no_response(60, error)
    assert (alone, health.explains_failures) == (False, True)


async def test_an_answer_from_before_ends_no_fault() -> None:
    """Only a request that was begun after the last failure shows that the server is back."""
    health, clock = a_health()
    await clock.advance(10)
    health.note_response(10, "/api", 401)
    health.note_response(9, "/api", 200)
    before = health.unready()
    health.note_response(10, "/api", 200)
    assert (len(before), health.unready()) == (1, [])


async def test_faults_that_flap(caplog: pytest.LogCaptureFixture) -> None:
    """A fault that comes back within five seconds is not reported again, nor its end; one that lasts is, in time."""
    caplog.set_level(logging.INFO)
    health, clock = a_health()
    for _ in range(300):
        for status in (401, 200):
            await clock.advance(0.5)
            health.note_response(clock.monotonic_s(), "/api", status)
    first = len(lines(caplog))
    await clock.advance(1)
    health.note_response(clock.monotonic_s(), "/api", 401)
    assert (first, len(lines(caplog))) == (2, 3)


async def test_nothing_before_the_first_answer(caplog: pytest.LogCaptureFixture) -> None:
    """What begins with a server that is away, or refuses us, is reported by who waits for it."""
    world = AutoscalerWorld()
    world.cluster.fail(Response(401, {}, b""))
    await world.start()
    await world.advance(10)
    assert (fault(world, "unauthorized"), [line for line in lines(caplog) if "credentials" in line]) == (0, [])
    await world.close()


async def _lasts(health: ServerHealth, clock: VirtualClock, until_s: float) -> None:
    """Requests fail every second until that instant."""
    while clock.monotonic_s() < until_s:
        health.note_no_response(clock.monotonic_s(), TransportError(Request("GET", "/api"), server="", cause=CAUSE))
        await clock.advance(1)


async def test_an_outage_after_a_short_one(caplog: pytest.LogCaptureFixture) -> None:
    """One that begins soon after another is reported once it has lasted five seconds, again later, and its end too."""
    caplog.set_level(logging.INFO)
    health, clock = a_health()
    start_s = clock.monotonic_s()
    await _lasts(health, clock, start_s + 2)
    health.note_response(clock.monotonic_s(), "/api", 200)
    await clock.advance(2)
    await _lasts(health, clock, start_s + 700)
    health.note_response(clock.monotonic_s(), "/api", 200)
    away = f"{SERVER} of {CALLER} does not answer: {CAUSE}; syncs fail until it does"
    assert lines(caplog) == [
        away,
        f"{SERVER} answers again, after 2.0 s in which 0 syncs failed",
        *[away] * 3,
        f"{SERVER} answers again, after 696.0 s in which 0 syncs failed",
    ]


async def test_refused_credentials_after_a_short_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """They are reported once they have been refused for five seconds, and their end too."""
    caplog.set_level(logging.INFO)
    health, clock = a_health()
    for status, span_s in ((401, 2), (200, 2), (401, 4), (401, 1), (401, 1), (200, 0)):
        health.note_response(clock.monotonic_s(), "/api", status)
        await clock.advance(span_s)
    begun = [line for line in lines(caplog) if line == REFUSAL]
    assert (len(begun), lines(caplog)[-1]) == (
        2,
        f"{SERVER} accepts the credentials of {CALLER} again, after 6.0 s in which 0 syncs failed",
    )
