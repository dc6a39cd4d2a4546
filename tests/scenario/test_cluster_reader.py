"""`podscaler lint` on an API server: it lists what rules need, writes nothing, says what it may not see."""

import asyncio
import copy
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server_world import CLOCK, SPEC, ApiServerWorld, named

from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.lint import cluster_reader
from podscaler.cli.lint.cluster_reader import ClusterSnapshot
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport.config import Config
from podscaler.lint import linter
from podscaler.lint.model import reading
from podscaler.lint.model.linted_item import DocumentOrigin, Item

HPAS = "horizontalpodautoscalers.autoscaling"
PAS = "podautoscalers.podscaler.dev"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with the autoscaler default/web of the Deployment web."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_web(pods=1)
    yield made
    await made.close()


async def config_of(world: ApiServerWorld) -> Config:
    """How to reach it."""
    return await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))


async def seen(world: ApiServerWorld, *namespaces: str, files: tuple[Item, ...] = ()) -> ClusterSnapshot:
    """What the command sees."""
    return await cluster_reader.read_cluster(await config_of(world), namespaces, files, CLOCK)


def rules(look: ClusterSnapshot, files: tuple[Item, ...] = ()) -> list[str]:
    """The rules that find something."""
    findings = linter.lint([*files, *look.items], look.cluster, files_only=bool(files))
    return [finding.rule.id for finding in findings]


async def test_a_clean_cluster(world: ApiServerWorld) -> None:
    """Autoscaler, target and metrics are found; objects outside of the namespace are not looked at."""
    look = await seen(world, "default")
    assert (rules(look), look.notes) == ([], [])
    assert {item.full_name for item in look.items} == {
        "HorizontalPodAutoscaler default/web",
        "Deployment default/web",
    }
    assert (await seen(world, "other")).items == []


async def test_a_broken_cluster(world: ApiServerWorld) -> None:
    """A second autoscaler for a kind that is not there, and another one for the same target."""
    template = world.hpa()
    for name, target in (("rival", {}), ("lost", {"name": "lost"}), ("odd", {"apiVersion": "x.io/v1", "kind": "Odd"})):
        spec = copy.deepcopy(template["spec"])
        spec["scaleTargetRef"].update(target)
        await world.opened.registry.create(HPAS, named(name, spec=spec) | {"apiVersion": "autoscaling/v2"})
    assert sorted(rules(await seen(world))) == ["PSL002", "PSL003", "PSL008", "PSL008"]


async def test_pod_autoscalers_of_a_cluster(world: ApiServerWorld) -> None:
    """They are looked at where the cluster has them, and beside HorizontalPodAutoscalers."""
    registry = world.opened.registry
    await world.define_pod_autoscalers()
    for name, spec in (("web", SPEC), ("lost", SPEC | {"scaleTargetRef": SPEC["scaleTargetRef"] | {"name": "lost"}})):
        await registry.create(PAS, named(name, spec=spec) | {"apiVersion": "podscaler.dev/v1alpha1"})
    look = await seen(world, "default")
    assert (sorted(rules(look)), look.notes) == (["PSL003", "PSL008", "PSL008"], [])
    assert {item.full_name for item in look.items if item.kind == "PodAutoscaler"} == {
        "PodAutoscaler default/lost",
        "PodAutoscaler default/web",
    }


async def test_files_within_a_cluster(world: ApiServerWorld) -> None:
    """A file's autoscaler finds its target in the cluster, whose own autoscalers are its surroundings."""
    body = {**world.hpa(), "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    body["metadata"] = {"name": "mine", "namespace": "default"}
    files = tuple(reading.items(body, DocumentOrigin("f.yaml")))
    assert rules(await seen(world, "default", files=files), files) == ["PSL008", "PSL008"]


async def test_a_server_that_is_not_there(world: ApiServerWorld) -> None:
    """One sentence that names the server and the kubeconfig."""
    config = await config_of(world)
    await world.stop_server()
    with pytest.raises(UsageError, match="cannot reach the API server https://127"):
        await cluster_reader.read_cluster(config, (), (), CLOCK)


async def test_what_may_not_be_listed_is_said(world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that the server does not show is noted, and nothing is said about targets of it."""
    send = Client.get

    async def refusing(client: Client, path: str, **rest: Any) -> bytes:
        if path.endswith("/deployments"):
            raise StatusError("deployments.apps is forbidden", code=403, reason="Forbidden")
        return await send(client, path, **rest)

    monkeypatch.setattr(Client, "get", refusing)
    look = await seen(world, "default")
    assert (rules(look), look.notes) == ([], ["Deployment objects are not known: deployments.apps is forbidden"])


async def test_the_command_on_a_cluster(world: ApiServerWorld) -> None:
    """`--live` reads the kubeconfig and judges the objects of its namespace; the exit status says if it found any."""
    spec = {**SPEC, "minReplicas": 10}
    await world.opened.registry.create(HPAS, named("fixed", spec=spec) | {"apiVersion": "autoscaling/v2"})
    command = [
        sys.executable,
        "-m",
        "podscaler",
        "lint",
        "--kubeconfig",
        str(world.folder / "kubeconfig"),
        "-o",
        "json",
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    shown = [(each["rule"], each["object"]) for each in json.loads(output)["findings"]]
    assert (process.returncode, sorted(shown)) == (1, [("PSL008", "fixed"), ("PSL008", "web"), ("PSL014", "fixed")])
