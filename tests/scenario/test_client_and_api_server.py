"""The client against the embedded API server: credentials from a program, lists as events, and restarts."""

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server_world import CLOCK, TOKEN, ApiServerWorld, eventually, named

from patience import WITHIN_S
from podscaler.controller.informers import observed_objects
from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.controller.server import permissions
from podscaler.core.model.emulation import V1_37
from podscaler.kube.client import connect
from podscaler.kube.config import locate
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector

PLUGIN = """#!{python}
import json, pathlib
runs = pathlib.Path(__file__).with_name("runs")
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
token = "stale-secret" if count == 1 else "{token}"
version = "client.authentication.k8s.io/v1"
print(json.dumps({{"kind": "ExecCredential", "apiVersion": version, "status": {{"token": token}}}}))
"""
POD = {"spec": {"containers": [{"name": "c", "image": "example.com/i:1"}]}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server without a controller."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    yield made
    await made.close()


def _with_plugin(folder: Path, command: str) -> Path:
    document = yaml.safe_load((folder / "kubeconfig").read_text())
    settings = {"command": command, "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    document["users"][0]["user"] = {"exec": settings | {"installHint": "ask the administrators"}}
    path = folder / "with-plugin"
    path.write_text(yaml.safe_dump(document))
    return path


async def _start(path: Path, *more: str) -> asyncio.subprocess.Process:
    # the server has no kube-system, where the Lease would be
    arguments = ("-m", "podscaler", "controller", "--leader-elect=false", "--kubeconfig", str(path), *more)
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=asyncio.subprocess.PIPE)


@pytest.mark.slow
async def test_a_token_that_is_refused_is_renewed_by_its_program(world: ApiServerWorld) -> None:
    """A stale token of a credential plugin is waited out: the program runs again, and the controller works."""
    plugin = world.folder / "plugin"
    plugin.write_text(PLUGIN.format(python=sys.executable, token=TOKEN))
    plugin.chmod(0o755)
    world.metrics.cpu = "900m"
    await world.create_web()
    process = await _start(_with_plugin(world.folder, "./plugin"), "--horizontal-pod-autoscaler-sync-period=500ms")
    await eventually(lambda: world.replicas() == 2)
    process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (process.returncode, (world.folder / "runs").read_text()) == (0, "2")
    assert b"does not accept the credentials" in said
    assert b"stale-secret" not in said
    assert TOKEN.encode() not in said


async def test_a_program_that_is_not_there(world: ApiServerWorld) -> None:
    """A missing credential plugin ends the command with one sentence that has the kubeconfig's hint."""
    path = _with_plugin(world.folder, "no-such-plugin")
    process = await _start(path)
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode == 2
    assert said.decode().startswith(f"podscaler: kubeconfig {path}: user ")
    assert said.decode().endswith(": exec: executable no-such-plugin not found: ask the administrators\n")


class Follower:
    """A cache of pods that follows the server."""

    def __init__(self) -> None:
        self.cache: Cache[CachedPod] = Cache()

    async def start(self, world: ApiServerWorld, *, streams_lists: bool) -> None:
        config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
        self.client = await connect.open_client(config, CLOCK, user_agent="test")
        self.client.streams_lists = streams_lists
        self.missing = await permissions.find_missing(self.client)
        source = observed_objects.pod_source(V1_37)
        self.reflector = Reflector(self.client, source, cache=self.cache, clock=CLOCK, rng=random.Random(1))
        self.task = asyncio.ensure_future(self.reflector.run())
        await asyncio.wait_for(self.cache.wait_synced(), WITHIN_S)

    def names(self) -> list[Any]:
        return sorted(pod.metadata.name for pod in self.cache)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.client.close()


@pytest.mark.parametrize("streams_lists", [True, False], ids=["list as events", "list and watch"])
async def test_a_restart_of_the_server(world: ApiServerWorld, streams_lists: bool) -> None:
    """What happens before, while and after a server restarts is in the cache in the end, and nothing else."""
    registry = world.opened.registry
    await registry.create("pods", named("before") | POD)
    await registry.create("pods", named("gone") | POD)
    follower = Follower()
    await follower.start(world, streams_lists=streams_lists)
    at_first = follower.names()
    await world.stop_server()
    await world.start_server()
    registry = world.opened.registry
    await registry.delete("pods", "default", "gone")
    await registry.create("pods", named("after") | POD)
    await eventually(lambda: follower.names() == ["after", "before"])
    await follower.close()
    assert (at_first, follower.missing) == (["before", "gone"], [])
