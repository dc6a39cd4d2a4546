"""The informer of MetricSources: what it finds, and what a cluster without the definition costs."""

import asyncio
import logging
import random

import msgspec
import pytest

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.sources.cluster_sources import ClusterSources
from podscaler.sources.informer import MetricSourceFetcher, MetricSourceInformer
from podscaler.testing import VirtualClock
from podscaler.testing.sources import metric_source
from podscaler.testing.transport import Feed, ScriptedTransport, json_answer

PATH = "/apis/podscaler.dev/v1alpha1/metricsources"
ONE = "/apis/podscaler.dev/v1alpha1/namespaces/shop/metricsources/jobs"
JOBS = {"metadata": {"name": "jobs", "namespace": "shop", "uid": "uid-jobs", "resourceVersion": "7"}, "spec": {"a": 1}}
NOT_SERVED = Response(404, {"content-type": "text/plain"}, b"404 page not found\n")


def served(*objects: object) -> ScriptedTransport:
    """An API server with these objects, whose watch stays open."""
    transport = ScriptedTransport()
    page = json_answer({"metadata": {"resourceVersion": "9"}, "items": list(objects)})
    transport.on("GET", PATH, page, Feed())
    return transport


async def test_objects_are_found_once_they_are_listed() -> None:
    """`find` waits for the first list."""
    clock = VirtualClock()
    informer = MetricSourceInformer(Client(served(JOBS), clock), clock, random.Random(1))
    finding = asyncio.ensure_future(informer.find(("shop", "jobs")))
    running = asyncio.ensure_future(informer.run())
    await clock.advance(1.0)
    found = await finding
    running.cancel()
    assert found is not None
    assert (found.spec, await informer.find(("shop", "mails"))) == ({"a": 1}, None)


async def test_a_list_that_does_not_come_is_a_failure_of_the_metric() -> None:
    """Nobody waits for ever."""
    clock = VirtualClock()
    informer = MetricSourceInformer(Client(ScriptedTransport(), clock), clock, random.Random(1))
    finding = asyncio.ensure_future(informer.find(("shop", "jobs")))
    await clock.advance(6.0)
    with pytest.raises(StatusError, match=r"^MetricSources are not listed yet$"):
        await finding


STATUS = {"kind": "Status", "message": "no", "reason": "", "code": 503}


async def test_a_list_that_fails_is_a_failure_of_the_metric() -> None:
    """The external metrics API is not asked in place of sources that may be there."""
    clock, transport = VirtualClock(), ScriptedTransport()
    transport.on("GET", PATH, json_answer(STATUS, 503))
    informer = MetricSourceInformer(Client(transport, clock), clock, random.Random(1))
    running = asyncio.ensure_future(informer.run())
    await clock.advance(0.0, turns=50)
    with pytest.raises(
        StatusError, match=r"^MetricSources are not listed yet: the server is currently unable to handle the request"
    ):
        await informer.find(("shop", "jobs"))
    running.cancel()


async def test_sources_that_may_not_be_listed_are_none() -> None:
    """A controller without that permission reads external metrics as upstream's does."""
    clock, transport = VirtualClock(), ScriptedTransport()
    transport.on("GET", PATH, json_answer(STATUS | {"reason": "Forbidden", "code": 403}, 403))
    informer = MetricSourceInformer(Client(transport, clock), clock, random.Random(1))
    running = asyncio.ensure_future(informer.run())
    await clock.advance(0.0, turns=50)
    assert await informer.find(("shop", "jobs")) is None
    running.cancel()


async def test_a_cluster_without_the_definition_has_none(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is logged, however long it lasts."""
    caplog.set_level(logging.INFO)
    clock = VirtualClock()
    informer = MetricSourceInformer(Client(ScriptedTransport(), clock), clock, random.Random(1))
    running = asyncio.ensure_future(informer.run())
    await clock.advance(120.0, turns=100)
    found = await informer.find(("shop", "jobs"))
    running.cancel()
    assert (found, caplog.messages) == (None, [])


@pytest.mark.parametrize(
    ("answer", "spec"),
    [
        (json_answer(JOBS), {"a": 1}),
        (NOT_SERVED, None),
        (json_answer({"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403}, 403), None),
    ],
    ids=["there", "not served", "forbidden"],
)
async def test_single_requests(answer: Response, spec: dict[str, int] | None) -> None:
    """For a command that looks once."""
    transport = ScriptedTransport()
    transport.on("GET", ONE, answer)
    found = await MetricSourceFetcher(Client(transport, VirtualClock())).find(("shop", "jobs"))
    assert (None if found is None else found.spec) == spec


async def test_a_server_that_fails_is_no_missing_source() -> None:
    """The external metrics API is not asked in place of a source that may be there."""
    transport = ScriptedTransport()
    transport.on("GET", ONE, Response(500, {}, b"broken"))
    with pytest.raises(StatusError):
        await MetricSourceFetcher(Client(transport, VirtualClock())).find(("shop", "jobs"))


@pytest.mark.parametrize(
    ("kind", "spec", "is_closed"),
    [("MODIFIED", {"cron": {}}, True), ("MODIFIED", {"a": 1}, False), ("DELETED", {"a": 1}, True)],
    ids=["edited", "only its status", "deleted"],
)
async def test_when_an_open_source_is_closed(
    kind: str, spec: dict[str, object], *, is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections end with the spec that they are for."""
    discarded: list[tuple[str, str]] = []
    monkeypatch.setattr("podscaler.sources.open_sources.OpenSources.discard", lambda _, key: discarded.append(key))
    clock, feed, transport = VirtualClock(), Feed(), served(JOBS)
    transport.on("GET", PATH, json_answer({"metadata": {"resourceVersion": "9"}, "items": [JOBS]}), feed)
    client = Client(transport, clock)
    sources = ClusterSources(client, clock, random.Random(1), folder=None, fresh_s=0, may_write=lambda: True)
    running = asyncio.ensure_future(sources.run())
    newer = JOBS | {"metadata": {**msgspec.to_builtins(JOBS["metadata"]), "resourceVersion": "8"}, "spec": spec}
    feed.send(msgspec.json.encode({"type": kind, "object": newer}))
    await clock.advance(1.0)
    found = list(discarded)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert found == ([("shop", "jobs")] if is_closed else [])


def test_the_builder_is_a_valid_object() -> None:
    """Tests use what the informer decodes."""
    assert metric_source().spec == {"custom": {"type": "fake"}}
