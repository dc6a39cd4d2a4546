"""`podscaler controller` as a process: its endpoints, its signals, and one sentence for what it cannot work with."""

import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
import yaml
from api_server_world import TOKEN, ApiServerWorld, eventually

from own_ports import own_place
from patience import WITHIN_S
from podscaler.cli.commands.replay import read_lines
from podscaler.controlplane.credentials import certificates
from podscaler.core import replay


async def start(*arguments: str) -> asyncio.subprocess.Process:
    """The command, its output captured."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podscaler",
        "controller",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def refused(*arguments: str) -> str:
    """The sentence with which the command ends; it must end with status 2."""
    process = await start(*arguments)
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode == 2, said
    return said.decode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server without a controller."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_system_namespace()
    yield made
    await made.close()


async def answer(url: str) -> tuple[int, str]:
    """Status and text of an endpoint; status 0 while nobody listens."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()
    except aiohttp.ClientConnectorError:
        return 0, ""


SCALED_UP = 'reconciliations_total{action="scale_up",error="none"} 1.0'


async def scraped(url: str, wanted: str) -> str:
    """The metrics once they say what is wanted, or as they are when patience ends."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        _, text = await answer(url)
        if wanted in text or time.monotonic() > deadline_s:
            return text
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_scales_until_it_is_told_to_end(world: ApiServerWorld, number: signal.Signals) -> None:
    """The command works on a cluster, serves its endpoints, and ends cleanly on a signal."""
    world.metrics.cpu = "900m"
    await world.create_web()
    place = "{}:{}".format(*own_place())
    process = await start(
        "--kubeconfig",
        str(world.folder / "kubeconfig"),
        f"--metrics-bind-address={place}",
        "--horizontal-pod-autoscaler-sync-period=500ms",
    )
    await eventually(lambda: world.replicas() == 2)
    ready = await answer(f"http://{place}/readyz")
    metrics = await scraped(f"http://{place}/metrics", SCALED_UP)
    process.send_signal(number)
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (ready, process.returncode) == ((200, "ok"), 0), said
    assert SCALED_UP in metrics
    assert TOKEN not in said.decode()


async def test_it_records_what_it_decides(world: ApiServerWorld) -> None:
    """With --record the syncs are kept until the signal; replayed, they give the status that the cluster has."""
    world.metrics.cpu = "900m"
    await world.create_web()
    path = world.folder / "web.recording.jsonl.gz"
    flags = ["--record", str(path), "--horizontal-pod-autoscaler-sync-period=200ms", "--history=memory"]
    process = await start("--kubeconfig", str(world.folder / "kubeconfig"), *flags)
    # by then the status stands still: what is decided and what is written cannot differ by a sync that is cut short
    await eventually(lambda: (world.replicas(), world.condition("AbleToScale")) == (2, "ReadyForNewScale"))
    process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode == 0, said
    with path.open("rb") as source:
        decisions = list(replay.decisions(read_lines(source)))
    assert [line.replicas for line in decisions if line.replicas] == [2]
    assert msgspec.json.decode(msgspec.json.encode(decisions[-1].status)) == world.hpa()["status"]


async def test_an_unreachable_server(tmp_path: Path) -> None:
    """Nobody listens: the address, the context, and why; it is waited for until a signal comes."""
    place = "{}:{}".format(*own_place())
    document = {
        "current-context": "far",
        "contexts": [{"name": "far", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{place}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    process = await start("--kubeconfig", str(path), "--kube-api-qps=100")
    assert process.stderr is not None
    said = (await asyncio.wait_for(process.stderr.readline(), WITHIN_S)).decode()
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode == 0
    assert said.endswith(
        f'cannot reach the API server https://{place} (context "far" of {path}): '
        f"dial tcp {place}: connect: connection refused; trying again\n"
    )


async def test_a_server_that_nobody_vouches_for(world: ApiServerWorld) -> None:
    """A certificate of an unknown authority is named as such."""
    path = world.folder / "kubeconfig"
    document = yaml.safe_load(path.read_text())
    del document["clusters"][0]["cluster"]["certificate-authority-data"]
    other = world.folder / "other"
    other.write_text(yaml.safe_dump(document))
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in await refused(
        "--kubeconfig", str(other)
    )


async def test_a_wrong_token(world: ApiServerWorld) -> None:
    """Credentials that the server does not accept are said to be so, and not shown."""
    path = world.folder / "kubeconfig"
    other = world.folder / "other"
    other.write_text(path.read_text().replace(TOKEN, "a-wrong-token"))
    said = await refused("--kubeconfig", str(other))
    assert re.search(r"does not accept the credentials of context .* Unauthorized", said)
    assert "a-wrong-token" not in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--context", "none"], 'context "none" is not in contexts (it has podscaler)'),
        (["--metrics-bind-address", "nowhere"], '--metrics-bind-address "nowhere" is not HOST:PORT'),
        (["--metrics-bind-address", "127.0.0.1:99999"], '--metrics-bind-address "127.0.0.1:99999" is not HOST:PORT'),
        (["--horizontal-pod-autoscaler-sync-period=5"], "missing unit in duration"),
    ],
)
async def test_wrong_flags(world: ApiServerWorld, arguments: list[str], sentence: str) -> None:
    """One sentence, exit status 2."""
    said = await refused("--kubeconfig", str(world.folder / "kubeconfig"), *arguments)
    assert (said.startswith("podscaler: "), said.count("\n"), sentence in said) == (True, 1, True), said


async def test_the_address_is_taken(world: ApiServerWorld) -> None:
    """An address to listen on that somebody has is named with its flag."""
    said = await refused(
        "--kubeconfig", str(world.folder / "kubeconfig"), f"--metrics-bind-address=127.0.0.1:{world.port}"
    )
    assert said.splitlines()[-1].startswith(f"podscaler: --metrics-bind-address 127.0.0.1:{world.port}: ")


async def test_who_may_read_the_metrics(world: ApiServerWorld, tmp_path: Path) -> None:
    """With delegated authentication the API server says: an admin may, a stranger and an unknown token may not."""
    host, port = own_place()
    made = await asyncio.to_thread(
        certificates.ensure, tmp_path / "certificates", now_ns=time.time_ns(), addresses=[host]
    )
    url = f"https://{host}:{port}"
    process = await start(
        f"--kubeconfig={world.folder / 'kubeconfig'}",
        f"--metrics-bind-address={host}:{port}",
        f"--tls-cert-file={made.server_path}",
        f"--tls-private-key-file={made.server_path}",
        "--metrics-authentication=delegated",
    )
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=made.client_context())) as session:
            answers = await _statuses(session, url)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert answers == {"admin": 200, "unknown": 401, "stranger": 403, "health": 200}


async def _statuses(session: aiohttp.ClientSession, url: str) -> dict[str, int]:
    """Who gets which answer, once somebody listens."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        try:
            async with session.get(f"{url}/healthz"):
                break
        except aiohttp.ClientConnectorError:
            assert time.monotonic() < deadline_s, "nobody listens"
            await asyncio.sleep(0.05)
    asked = {
        "admin": ("/metrics", f"Bearer {TOKEN}"),
        "unknown": ("/metrics", "Bearer x"),
        "stranger": ("/metrics", ""),
    }
    found = {}
    for name, (path, token) in (asked | {"health": ("/healthz", "")}).items():
        headers = {"Authorization": token} if token else {}
        async with session.get(f"{url}{path}", headers=headers) as response:
            found[name] = response.status
    return found
