"""Records what the real prometheus-adapter answers about a real Prometheus, and compares our answers at once.

    python tests/conformance/adapter/record_adapter.py [--check]

Run by hand after samples or requests have changed; needs Prometheus and `make assets`. Both adapters get the responses
of Prometheus through a proxy that evaluates all expressions at one instant, so that both see the same values. A capture
has the configuration, these responses, what our adapter read from the API server, and the answer to each request.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web
from yarl import URL

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

from adapter_cases import OBJECTS, REQUESTS
from adapter_replay import BATCHED, DIRECT, answers_of_ours, normalised
from asset_modules import find_program
from up_process import Up

from own_ports import own_place
from podscaler.base.clock import SystemClock
from podscaler.kube.client import connect
from podscaler.kube.config import locate
from podscaler.kube.transport.transport import Request, Response, WrappedTransport

HERE = Path(__file__).parent
SETTLE_S = 12.0
"""How long Prometheus scrapes before the first request."""


class Keeper(WrappedTransport):
    """Keeps the responses of an API server by path and query."""

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)
        self.kept: dict[str, dict[str, Any]] = {}

    async def request(self, request: Request) -> Response:
        """As in Transport."""
        response = await self._transport.request(request)
        self.kept[request.target] = {"status": response.status, "body": json.loads(response.body)}
        return response


async def exposition(_: web.Request) -> web.Response:
    """The sample metrics; counters grow with time."""
    text = (HERE / "samples" / "exposition.txt").read_text()
    elapsed_s = time.time() % 1_000_000
    for number in range(1, 10):
        text = text.replace(f"COUNTER{number}", f"{number * elapsed_s:.3f}")
    return web.Response(text=text)


class PrometheusProxy:
    """Passes requests on to Prometheus, and repeats the first response to each query."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.instant = ""
        self.kept: dict[str, dict[str, Any]] = {}

    def begin(self) -> None:
        """Forget all responses; expressions are evaluated as of now from here on."""
        self.instant, self.kept = f"{time.time():.3f}", {}

    async def respond(self, request: web.Request) -> web.Response:
        """The response to an expression or a selector, whatever the instant is."""
        parameters = dict(parse_qsl(request.query_string))
        if "time" in parameters:
            parameters["time"] = self.instant
        key = f"{request.path} {parameters.get('query') or parameters.get('match[]')}"
        if key not in self.kept:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.server}{request.path}", params=parameters) as response,
            ):
                self.kept[key] = {"status": response.status, "body": await response.json()}
        found = self.kept[key]
        return web.json_response(found["body"], status=found["status"])


async def serve(route: str, handler: Any) -> tuple[web.AppRunner, str]:
    """A server in this process, and its address."""
    app = web.Application()
    app.router.add_get(route, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"127.0.0.1:{runner.addresses[0][1]}"


def start_prometheus(folder: Path, target: str) -> tuple[subprocess.Popen[bytes], str]:
    """A Prometheus that scrapes the target each second."""
    program = shutil.which("prometheus")
    assert program, "apt-get install prometheus"
    host, port = own_place()
    job = {"job_name": "sample", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    (folder / "prometheus.yml").write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    command = [program, f"--config.file={folder}/prometheus.yml", f"--web.listen-address={host}:{port}"]
    log = (folder / "prometheus.log").open("w")
    process = subprocess.Popen([*command, f"--storage.tsdb.path={folder}/tsdb"], stdout=log, stderr=log)
    return process, f"http://{host}:{port}"


def start_adapter(folder: Path, sample: str, up: Up, prometheus: str) -> tuple[subprocess.Popen[bytes], str]:
    """The real prometheus-adapter with one of the samples."""
    program = find_program("prometheus-adapter")
    assert program, "make assets"
    host, port = own_place()
    kubeconfigs = [f"--{part}-kubeconfig={up.kubeconfig}" for part in ("lister", "authentication", "authorization")]
    flags = [f"--config={HERE}/samples/{sample}.yaml", f"--prometheus-url={prometheus}", *kubeconfigs]
    flags += [
        f"--secure-port={port}",
        f"--bind-address={host}",
        f"--cert-dir={folder}",
        "--metrics-relist-interval=10m",
    ]
    log = (folder / f"{sample}.log").open("w")
    return subprocess.Popen([str(program), *flags], stdout=log, stderr=log), f"https://{host}:{port}"


async def answers(server: str, token: str, paths: list[str]) -> list[dict[str, Any]]:
    """The answers of a server to all paths."""
    found = []
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for path in paths:
            async with session.get(URL(server + path, encoded=True), ssl=False) as response:
                text = await response.text()
                is_json = response.content_type == "application/json"
                body = normalised(json.loads(text)) if is_json else text
                found.append({"path": path, "status": response.status, "body": body})
    return found


async def wait_ready(server: str, token: str, group_version: str) -> None:
    """Return once the adapter lists metrics."""
    for _ in range(300):
        try:
            [answer] = await answers(server, token, [group_version])
            if answer["status"] == 200 and answer["body"].get("resources"):
                return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise AssertionError("prometheus-adapter is not ready")


async def record(sample: str, up: Up, proxy: PrometheusProxy, address: str, folder: Path) -> dict[str, Any]:
    """The capture of a sample."""
    token = up._access()[2]
    proxy.begin()
    process, server = start_adapter(folder, sample, up, f"http://{address}")
    try:
        await wait_ready(server, token, REQUESTS[sample][1])
        theirs = await answers(server, token, REQUESTS[sample])
    finally:
        process.terminate()
        process.wait()
    clock = SystemClock()
    client = await connect.open_client(locate.find_config(str(up.kubeconfig)), clock, user_agent="recorder")
    keepers: list[Keeper] = []

    def keep(transport: Any) -> Keeper:
        keepers.append(Keeper(transport))
        return keepers[0]

    client.wrap_transport(keep)
    config = (HERE / "samples" / f"{sample}.yaml").read_text()
    for name, settings in (("direct", DIRECT), ("batched", BATCHED)):
        ours = await answers_of_ours(config, client, f"http://{address}", REQUESTS[sample], settings)
        differences = [(a, b) for a, b in zip(theirs, ours, strict=True) if a != b]
        for expected, found in differences:
            print(f"{name} {expected['path']}\n  theirs {expected['status']} {json.dumps(expected['body'])}")
            print(f"  ours   {found['status']} {json.dumps(found['body'])}")
        print(f"{sample}, {name}: {len(theirs)} requests, {len(differences)} differ")
    await client.close()
    kubernetes = dict(keepers[0].kept)
    return {"config": config, "kubernetes": kubernetes, "prometheus": proxy.kept, "answers": theirs}


async def main() -> None:
    """Record all samples."""
    folder = Path(tempfile.mkdtemp())
    up = Up(folder / "data", ("--api-only",)).start()
    target, place = await serve("/metrics", exposition)
    prometheus, server = start_prometheus(folder, place)
    proxy = PrometheusProxy(server)
    runner, address = await serve("/{path:.*}", proxy.respond)
    try:
        for path, body in OBJECTS:
            created = up.create(path, body)
            if path.endswith("/pods"):
                status = {"status": {"phase": "Running"}}
                up.patch(f"{path}/{created['metadata']['name']}/status", status)
        await asyncio.sleep(SETTLE_S)
        for sample in REQUESTS:
            found = await record(sample, up, proxy, address, folder)
            if "--check" not in sys.argv:
                (HERE / f"{sample}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    finally:
        prometheus.terminate()
        prometheus.wait()
        up.stop()
        for each in (target, runner):
            await each.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
