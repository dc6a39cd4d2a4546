"""Whatever the API server does to the controller, it survives, and every autoscaler is looked at soon after the end."""

import random
from collections.abc import Callable

import pytest

import sampling
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import APPS, DEPLOYMENTS, HPAS, PODS, RESOURCE_METRICS, conflict, refusal
from podscaler.testing.transport import Feed, Reply, TransportFailure

NAMES = ("a", "b", "c", "d", "e")
PERIOD_S = 15.0
PATHS = (
    ("GET", HPAS),
    ("GET", PODS),
    ("GET", "/apis/apps"),
    ("GET", DEPLOYMENTS),
    ("GET", f"{RESOURCE_METRICS}shop/pods"),
    *(("GET", f"{APPS}shop/deployments/{name}/scale") for name in NAMES),
    *(("PUT", f"{APPS}shop/deployments/{name}/scale") for name in NAMES),
    *(("PUT", f"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/{name}/status") for name in NAMES),
    ("POST", "/api/v1/namespaces/shop/events"),
)
REPLIES: tuple[Reply, ...] = (
    TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused"),
    TransportFailure("EOF", broken=True),
    Response(500, {}, b"oops"),
    Response(503, {"retry-after": "1"}, b""),
    Response(429, {"retry-after": "2"}, b""),
    Response(200, {}, b""),
    Response(200, {}, b"<html>"),
    Response(200, {}, b'{"kind":"Other"}'),
    refusal(403, "Forbidden", "no"),
    refusal(404, "NotFound", "gone"),
    refusal(410, "Expired", "too old resource version"),
    conflict("things", "x"),
)


def _spoiled_watch(reply: Reply) -> Callable[[Request], Reply]:
    """For watches the reply as a stream that ends at once, for lists and other requests the reply itself."""

    def answer(request: Request) -> Reply:
        if "watch=true" in request.query and isinstance(reply, Response) and reply.status == 200:
            feed = Feed(reply.body)
            feed.cut()
            return feed
        return reply

    return answer


def _meddle(world: AutoscalerWorld, rng: random.Random) -> None:
    """One thing that happens to a cluster."""
    name = rng.choice(NAMES)
    match rng.randrange(8):
        case 0:
            world.cluster.end_watches(rng.choice(["", "EOF"]))
        case 1:
            world.cluster.put_autoscaler(name, spec(name, minimum=rng.randrange(1, 4)))
        case 2:
            if ("shop", name) in world.cluster.collections[HPAS].objects:
                world.cluster.delete(HPAS, name)
        case 3:
            world.cluster.put_deployment(name, rng.randrange(0, 12))
        case _:
            method, path = rng.choice(PATHS)
            reply = _spoiled_watch(rng.choice(REPLIES))
            world.cluster.interfere(method, path, *[reply] * rng.randrange(1, 6))


@pytest.mark.parametrize("seed", sampling.one_in(2, range(20)))
async def test_faults_pass(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Two minutes of faults, edits and deletions; two periods later every autoscaler has done what it should."""
    rng = random.Random(seed)
    world = AutoscalerWorld(lists_deployments=bool(seed % 2))
    for name in NAMES:
        world.cluster.put_deployment(name, 1)
        world.cluster.put_pod(f"{name}-0", name, "500m")
        world.cluster.put_autoscaler(name, spec(name))
    await world.start()
    for _ in range(60):
        _meddle(world, rng)
        await world.advance(rng.uniform(0, 4))
    world.cluster.recover()
    for name in NAMES:
        world.cluster.put_deployment(name, 1)
        world.cluster.put_autoscaler(name, spec(name, minimum=5, maximum=5))
    await world.advance(2 * PERIOD_S)
    await world.close()
    objects = world.cluster.collections[HPAS].objects
    seen = {name: objects["shop", name]["status"].get("observedGeneration") for name in NAMES}
    assert {name: world.replicas(name) for name in NAMES} == dict.fromkeys(NAMES, 5)
    assert seen == {name: objects["shop", name]["metadata"]["generation"] for name in NAMES}
    assert "is a bug" not in caplog.text
