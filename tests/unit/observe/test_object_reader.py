"""What a detail reads of the cluster around one autoscaler."""

import pytest

from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.observe.object_reader import LIST_MAX, ObjectReader
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer


@pytest.mark.parametrize(("count", "is_listed"), [(LIST_MAX - 1, True), (LIST_MAX, False)])
async def test_a_list_that_may_be_cut_is_no_list_of_all(count: int, is_listed: bool) -> None:
    """Lint rules take an object that is not among those of a listed kind for missing."""
    transport, clock = ScriptedTransport(), VirtualClock()
    metadata = {"name": "web", "namespace": "shop"}
    transport.on("GET", HPA.path("shop", "web"), json_answer({"metadata": metadata, "spec": {}}))
    quotas = [{"metadata": {"name": f"quota-{number}", "namespace": "shop"}} for number in range(count)]
    transport.on("GET", "/api/v1/namespaces/shop/resourcequotas", json_answer({"items": quotas}))
    objects = await ObjectReader(Client(transport, clock), clock).read(HPA, "shop", "web", "")
    assert (("", "resourcequota") in objects.listed) is is_listed


async def test_a_part_that_is_not_utf_8_is_a_note() -> None:
    """The detail has the other parts."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("GET", HPA.path("shop", "web"), json_answer({"metadata": {"name": "web"}, "spec": {}}))
    transport.on("GET", "/api/v1/namespaces/shop/limitranges", Response(200, {}, b'{"items": ["\xff"]}'))
    objects = await ObjectReader(Client(transport, clock), clock).read(HPA, "shop", "web", "")
    assert any(note.startswith("limitranges cannot be read: the response about") for note in objects.notes)
