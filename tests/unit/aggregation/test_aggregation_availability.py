"""What is said of other API servers: the condition Available of their APIServices."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aggregation_world import APISERVICES, GROUP, NAME, ROOT, SERVICE, World, open_world
from aiohttp import web

from podscaler.controlplane.aggregator.availability import Availability
from podscaler.testing import extension_server

SLICES = "endpointslices.discovery.k8s.io"
PASSED = ("True", "Passed", "all checks passed")
PORT = {"name": "https", "port": 443}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server, and another one to which nothing leads yet."""
    async with open_world(tmp_path) as opened:
        yield opened


def slice_of(
    port: int, address: str = "127.0.0.1", *, name: str = "https", ready: bool | None = None
) -> dict[str, Any]:
    """A slice with one endpoint, as somebody writes it who runs the server elsewhere."""
    conditions = {} if ready is None else {"conditions": {"ready": ready}}
    return {
        "metadata": {"name": SERVICE, "namespace": "default", "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "ports": [{"name": name, "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], **conditions}],
    }


def reference(port: int) -> dict[str, Any]:
    """The Service at another port."""
    return {"namespace": "default", "name": SERVICE, "port": port}


async def test_an_external_name(world: World) -> None:
    """A Service may name a host of the machine; the group and version are asked for as the aggregator."""
    await world.serve()
    await world.register()
    assert await world.check() == PASSED
    asked = world.extension.asked[-1]
    assert (asked.path, asked.all("X-Remote-User")) == (ROOT, ["system:kube-aggregator"])
    assert asked.all("X-Remote-Group") == ["system:masters"]


async def test_endpoints(world: World) -> None:
    """A Service without a selector leads to the endpoints of the slices that somebody made for it."""
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.registry.create(SLICES, slice_of(world.extension.port))
    await world.register(service=reference(443))
    assert await world.check() == PASSED
    assert (await world.get(ROOT)).status == 200


async def test_a_name_of_the_cluster(world: World) -> None:
    """An external name that is a Service of this cluster leads to that one's endpoints."""
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.registry.create(SLICES, slice_of(world.extension.port))
    spec = {"type": "ExternalName", "externalName": f"{SERVICE}.default.svc.cluster.local"}
    await world.registry.create("services", {"metadata": {"name": "alias", "namespace": "default"}, "spec": spec})
    await world.register(service={**reference(443), "name": "alias"}, insecureSkipTLSVerify=True)
    assert await world.check() == PASSED


async def test_no_service(world: World) -> None:
    """It is looked for by name."""
    await world.register()
    assert await world.check() == ("False", "ServiceNotFound", 'service/extension in "default" is not present')


async def test_no_such_port(world: World) -> None:
    """The port is one of the Service's, not of the pods'."""
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.register(service=reference(8443))
    text = 'service/extension in "default" is not listening on port 8443'
    assert await world.check() == ("False", "ServicePortError", text)


async def test_no_slices(world: World) -> None:
    """Nobody has said where the Service's endpoints are."""
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.register(service=reference(443))
    text = 'cannot find endpointslices for service/extension in "default"'
    assert await world.check() == ("False", "EndpointsNotFound", text)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({"endpoints": []}, id="none"),
        pytest.param(slice_of(443, name="other"), id="of another port"),
        pytest.param(slice_of(443, ready=False), id="not ready"),
    ],
)
async def test_no_endpoints(world: World, found: dict[str, Any]) -> None:
    """There must be one that is ready, on the port of that name."""
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.registry.create(SLICES, {**slice_of(443), **found})
    await world.register(service=reference(443))
    text = 'endpointslices for service/extension in "default" have no addresses with port name "https"'
    assert await world.check() == ("False", "MissingEndpoints", text)


def failed(world: World, why: str) -> tuple[str, str, str]:
    """What is said where the server was asked in vain."""
    url = f"https://localhost:{world.extension.port}{ROOT}"
    return "False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {why.replace('URL', url)}"


async def test_nobody_listens(world: World) -> None:
    """The port is closed."""
    await world.extension.stop()
    await world.serve()
    await world.register()
    port = world.extension.port
    assert await world.check() == failed(world, f'Get "URL": dial tcp 127.0.0.1:{port}: connect: connection refused')


async def test_a_bad_status(world: World) -> None:
    """Anything but success is a failure."""
    del world.extension.answers[ROOT]
    await world.serve()
    await world.register()
    assert await world.check() == failed(world, "bad status from URL: 404")


async def test_no_answer_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes too long is not waited for."""
    monkeypatch.setattr("podscaler.controlplane.aggregator.availability.CHECK_TIMEOUT_S", 0.05)

    asked_enough = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        await asked_enough.wait()
        return web.Response()

    world.extension.answers[ROOT] = hang
    await world.serve()
    await world.register()
    why = 'Get "URL": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    assert await world.check() == failed(world, why)
    asked_enough.set()


async def test_another_authority(world: World, tmp_path: Path) -> None:
    """The bundle decides whom to believe."""
    other = extension_server.write_certificate(tmp_path / "other.pem", "extension.default.svc")
    await world.serve()
    await world.register(caBundle=base64.b64encode(other).decode())
    why = 'Get "URL": tls: failed to verify certificate: x509: certificate signed by unknown authority'
    assert await world.check() == failed(world, why)


async def test_another_name(world: World, tmp_path: Path) -> None:
    """The certificate must be the Service's."""
    certificate = tmp_path / "named.pem"
    world.authority = extension_server.write_certificate(certificate, "other.default.svc")
    world.extension.certificate = certificate
    await world.extension.stop()
    await world.extension.start()
    await world.serve()
    await world.register()
    why = 'Get "URL": tls: failed to verify certificate: x509: certificate is not valid for extension.default.svc'
    assert await world.check() == failed(world, why)


async def test_nobody_is_verified(world: World, tmp_path: Path) -> None:
    """Where the user wants it so."""
    certificate = tmp_path / "named.pem"
    extension_server.write_certificate(certificate)
    world.extension.certificate = certificate
    await world.extension.stop()
    await world.extension.start()
    await world.serve()
    await world.register(insecureSkipTLSVerify=True)
    assert await world.check() == PASSED


async def test_a_bundle_that_is_none(world: World) -> None:
    """Nothing is said, and nothing is served."""
    await world.serve()
    await world.register(caBundle="MQ==")
    assert await world.check() == ("", "", "")
    assert (await world.get(ROOT)).body == "service unavailable\n"


async def test_transitions(world: World) -> None:
    """The time is that of the last change of status, not of reason."""
    await world.register()
    await world.check()
    first = world.registry.get(APISERVICES, "", NAME)["status"]["conditions"][0]["lastTransitionTime"]
    await world.clock.advance(60)
    await world.serve(type="ClusterIP", externalName="", ports=[PORT])
    await world.check()
    second = world.registry.get(APISERVICES, "", NAME)["status"]["conditions"][0]
    assert (second["reason"], second["lastTransitionTime"]) == ("ServicePortError", first)


async def test_what_becomes_local(world: World) -> None:
    """An APIService that names no Service any more is available."""
    await world.aggregate()

    def make_local(service: dict[str, Any]) -> None:
        del service["spec"]["service"], service["spec"]["caBundle"]

    await world.registry.mutate(APISERVICES, "", NAME, make_local)
    assert await world.check() == ("True", "Local", "Local APIServices are always available")


async def test_when_to_look_again(world: World) -> None:
    """Every half minute; after a failure soon, then with growing delays; never for what is local."""
    await world.serve()
    await world.register()
    await world.registry.create(
        APISERVICES,
        {
            "metadata": {"name": f"v2.{GROUP}"},
            "spec": {"group": GROUP, "version": "v2", "groupPriorityMinimum": 1, "versionPriority": 1},
        },
    )
    aggregation = world.aggregation
    checker = Availability(world.registry, aggregation.remotes, aggregation.connections, world.clock)
    assert await checker.sync(NAME) == 30.0
    await world.extension.stop()
    assert [await checker.sync(NAME) for _ in range(10)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    assert await checker.sync(f"v2.{GROUP}") is None
    assert await checker.sync("v3.gone") is None
