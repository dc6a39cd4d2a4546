"""Autoscalers migrate between the kinds on our API server, cut off anywhere, and no workload is ever without one."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from api_server_world import CLOCK, SPEC, ApiServerWorld, eventually, named

import sampling
from patience import WITHIN_S
from podscaler.base.errors import StatusError, UsageError
from podscaler.controller.coexistence.migration import MigrationTerms, Migrator
from podscaler.controller.informers import handover
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER, AutoscalerKind
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport, TransportError

HPAS = "horizontalpodautoscalers.autoscaling"
PAS = "podautoscalers.podscaler.dev"
CONDITION = {
    "type": "AbleToScale",
    "status": "True",
    "reason": "ReadyForNewScale",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
STATUS = {
    "observedGeneration": 1,
    "currentReplicas": 3,
    "desiredReplicas": 3,
    "lastScaleTime": "2026-01-01T00:00:00Z",
    "currentMetrics": None,
    "conditions": [CONDITION],
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "123"}


class Cut(Transport):
    """A transport that breaks at the request of that number (0: never), before or after the server has seen it."""

    def __init__(self, transport: Transport, at: int, *, is_sent: bool) -> None:
        self._transport = transport
        self._left = at
        self._is_sent = is_sent

    @property
    def server(self) -> str:
        return self._transport.server

    async def request(self, request: Request) -> Response:
        self._left -= 1
        is_last = self._left == 0
        if is_last and not self._is_sent:
            raise TransportError(request, server=self.server, cause="cut")
        answer = await self._transport.request(request)
        if is_last:
            raise TransportError(request, server=self.server, cause="cut")
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()


class World(ApiServerWorld):
    """A server that knows PodAutoscalers, with one HorizontalPodAutoscaler that has a status."""

    lines: list[str]

    async def start(self) -> None:
        await self.start_server()
        self.lines = []
        await self.define_pod_autoscalers()
        annotations = {"note": "kept"}
        meta = {"name": "web", "namespace": "default", "labels": {"team": "a"}, "annotations": annotations}
        made = await self.opened.registry.create(
            HPAS, {"apiVersion": "autoscaling/v2", "metadata": meta | {"ownerReferences": [OWNER]}, "spec": SPEC}
        )
        await self.opened.registry.update(HPAS, made | {"status": STATUS}, subresource="status")

    def client(self, cut: int = 0, *, is_sent: bool = False) -> "_Opened":
        return _Opened(self, cut, is_sent=is_sent)

    async def migrate(
        self, source: AutoscalerKind, cut: int = 0, *, is_sent: bool = False, tidies: bool = True, **terms: Any
    ) -> None:
        """Migrate `web`, with nobody's word waited for unless told otherwise."""
        target = POD_AUTOSCALER if source is HPA else HPA
        how = MigrationTerms(source, target, **({"ready_timeout_s": 0.0} | terms))
        async with self.client(cut, is_sent=is_sent) as client:
            migrator = Migrator(client, CLOCK, how, self.lines.append)
            await migrator.migrate("default", "web")
            if tidies:
                await migrator.remove_annotations()

    def find(self, kind: AutoscalerKind) -> dict[str, Any] | None:
        return self.opened.registry.find(kind.resource, "default", "web")


class _Opened:
    """A client, closed on leaving."""

    def __init__(self, world: World, cut: int, *, is_sent: bool) -> None:
        self._world, self._cut, self._is_sent = world, cut, is_sent

    async def __aenter__(self) -> Client:
        config = await asyncio.to_thread(locate.find_config, str(self._world.folder / "kubeconfig"))
        transport = await http_transport.connect(config, user_agent="podscaler/0 migrate")
        self._client = Client(Cut(transport, self._cut, is_sent=self._is_sent), CLOCK)
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Nobody looks after PodAutoscalers, which is found out quickly."""
    monkeypatch.setattr("podscaler.controller.coexistence.migration.STOP_TIMEOUT_S", 0.05)
    monkeypatch.setattr("podscaler.controller.coexistence.migration.READ_WITHIN_S", 0.05)
    made = World(tmp_path)
    try:
        await made.start()
        yield made
    finally:
        await made.close()


async def test_there_and_back(world: World) -> None:
    """Spec, status, labels, annotations and owners are those of the first, and marks of an earlier way are gone."""
    first = world.find(HPA)
    assert first is not None
    await world.migrate(HPA)
    made = world.find(POD_AUTOSCALER)
    assert made is not None
    assert (world.find(HPA), made["spec"], made["status"]) == (None, first["spec"], first["status"])
    assert {name: made["metadata"][name] for name in ("labels", "annotations", "ownerReferences")} == {
        "labels": {"team": "a"},
        "annotations": {"note": "kept", handover.MIGRATED_FROM: f"hpa/web/{first['metadata']['uid']}"},
        "ownerReferences": [OWNER],
    }
    await world.migrate(POD_AUTOSCALER)
    back = world.find(HPA)
    assert back is not None
    assert (world.find(POD_AUTOSCALER), back["spec"], back["status"]) == (None, first["spec"], first["status"])
    assert back["metadata"]["annotations"] == {"note": "kept"}


async def test_it_may_be_repeated(world: World) -> None:
    """Once migrated it says so, and changes nothing."""
    await world.migrate(HPA)
    made = world.find(POD_AUTOSCALER)
    await world.migrate(HPA)
    assert (world.find(POD_AUTOSCALER), world.lines) == (
        made,
        [
            "horizontalpodautoscaler default/web is a PodAutoscaler now",
            "horizontalpodautoscaler default/web is a PodAutoscaler already",
        ],
    )


async def test_a_way_back_may_be_repeated(world: World) -> None:
    """One that was cut off before the annotations were removed is completed: it says so, and removes them."""
    await world.migrate(HPA)
    await world.migrate(POD_AUTOSCALER, tidies=False)
    await world.migrate(POD_AUTOSCALER)
    found = world.find(HPA)
    assert found is not None
    assert (found["metadata"]["annotations"], world.lines[-1]) == (
        {"note": "kept"},
        "podautoscaler default/web is a HorizontalPodAutoscaler already",
    )


@pytest.mark.parametrize("source", [HPA, POD_AUTOSCALER], ids=["there", "back"])
@pytest.mark.parametrize("is_sent", sampling.one_in(2, [False, True]), ids=["not sent", "answer lost"])
async def test_cut_anywhere(world: World, source: AutoscalerKind, is_sent: bool) -> None:
    """Cut off at any request there is one of the two, and a second run completes what the first began."""
    target = POD_AUTOSCALER if source is HPA else HPA
    if source is POD_AUTOSCALER:
        await world.migrate(HPA)
    for cut in range(1, 60):
        try:
            await world.migrate(source, cut, is_sent=is_sent)
            break
        except StatusError:
            assert world.find(source) is not None or world.find(target) is not None
        await world.migrate(source)
        assert (world.find(source), world.find(target) is not None) == (None, True), f"cut at {cut}"
        await world.migrate(target)
    else:
        pytest.fail("no migration came through")


async def test_an_edit_in_between_is_carried_over(world: World) -> None:
    """What was edited after a first, cut-off run is in the counterpart before the source is deleted."""
    with pytest.raises(UsageError, match="no controller manages"):
        await world.migrate(HPA, ready_timeout_s=0.05)
    first = world.find(HPA)
    assert first is not None
    edited = first | {"spec": first["spec"] | {"maxReplicas": 17}}
    await world.opened.registry.update(HPAS, edited)
    await world.migrate(HPA)
    made = world.find(POD_AUTOSCALER)
    assert made is not None
    assert made["spec"]["maxReplicas"] == 17


async def test_a_stranger_of_that_name(world: World) -> None:
    """A PodAutoscaler that was not made from the autoscaler is left alone, and so is the autoscaler."""
    body = named("web", spec=SPEC) | {"apiVersion": POD_AUTOSCALER.api_version, "kind": POD_AUTOSCALER.kind}
    await world.opened.registry.create(PAS, body)
    with pytest.raises(UsageError, match="there is a podautoscaler default/web that was not made from"):
        await world.migrate(HPA)
    assert world.find(HPA) is not None


async def test_without_the_definition(world: World) -> None:
    """Where PodAutoscalers are not served, the sentence says how to have them."""
    await world.opened.registry.delete("customresourcedefinitions.apiextensions.k8s.io", "", PAS)
    await eventually(lambda: ("podscaler.dev", "v1alpha1") not in world.server.group_versions)
    with pytest.raises(UsageError, match=r"does not serve podautoscalers.podscaler.dev: podscaler crd \| kubectl"):
        await world.migrate(HPA)
    assert world.find(HPA) is not None


async def test_all_but_one(world: World) -> None:
    """One that cannot be migrated does not keep the others from it; the command tells, and fails."""
    await world.opened.registry.create(HPAS, named("api", spec=SPEC) | {"apiVersion": "autoscaling/v2"})
    body = named("api", spec=SPEC) | {"apiVersion": POD_AUTOSCALER.api_version, "kind": POD_AUTOSCALER.kind}
    await world.opened.registry.create(PAS, body)
    arguments = ["migrate", "hpa", "--all", "--timeout=0", f"--kubeconfig={world.folder / 'kubeconfig'}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podscaler", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, failed = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (process.returncode, said.decode(), failed.decode()) == (
        2,
        "horizontalpodautoscaler default/web is a PodAutoscaler now\n",
        "podscaler: there is a podautoscaler default/api that was not made from the horizontalpodautoscaler\n"
        "podscaler: 1 of 2 were not migrated\n",
    )


async def test_a_way_back_to_nobody(world: World) -> None:
    """The command warns where nobody is known to look after HorizontalPodAutoscalers, and goes on."""
    await world.migrate(HPA)
    arguments = ["migrate", "pa", "web", f"--kubeconfig={world.folder / 'kubeconfig'}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podscaler", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, warned = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (process.returncode, said.decode().splitlines()[-1], warned.decode()) == (
        0,
        "podautoscaler default/web is a HorizontalPodAutoscaler now",
        "podscaler: warning: whether a controller manages horizontalpodautoscalers is not known (there are none yet): "
        "if none does, what is migrated is not scaled until a controller manages it\n",
    )


async def test_what_is_not_there(world: World) -> None:
    """An autoscaler that does not exist is named."""
    with pytest.raises(UsageError, match="there is no podautoscaler default/web"):
        await world.migrate(POD_AUTOSCALER)


async def test_finalizers(world: World) -> None:
    """One whose deletion waits for finalizers is told, and the counterpart waits."""
    first = world.find(HPA)
    assert first is not None
    meta = first["metadata"] | {"finalizers": ["example.com/hold"]}
    await world.opened.registry.update(HPAS, first | {"metadata": meta})
    with pytest.raises(UsageError, match="is being deleted, and waits for its finalizers: example"):
        await world.migrate(HPA)


async def test_a_dry_run(world: World) -> None:
    """It tells, and nothing is made."""
    await world.migrate(HPA, is_dry_run=True)
    assert (world.lines, world.find(POD_AUTOSCALER)) == (
        ["horizontalpodautoscaler default/web would become a PodAutoscaler"],
        None,
    )


async def test_all_of_a_namespace(world: World) -> None:
    """The names are listed in order."""
    await world.opened.registry.create(HPAS, named("api", spec=SPEC) | {"apiVersion": "autoscaling/v2"})
    async with world.client() as client:
        migrator = Migrator(client, CLOCK, MigrationTerms(HPA, POD_AUTOSCALER), world.lines.append)
        assert await migrator.list_names("default") == [("default", "api"), ("default", "web")]
        assert await migrator.list_names("") == [("default", "api"), ("default", "web")]
