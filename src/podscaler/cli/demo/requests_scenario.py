"""The demo's scenario `requests`: a web service scaled by its requests per second, read from a real Prometheus.

`podscaler.cli.demo.demo` runs it. The pods count their requests, Prometheus scrapes them (the control plane lists them
for its HTTP service discovery), and the autoscaler reads the rate through a MetricSource.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from podscaler.cli.demo import demo_scenario, local_server
from podscaler.cli.demo.demo_scenario import DemoControlPlane, Object
from podscaler.cli.demo.local_server import HOST, LocalServer, ServerProgram
from podscaler.cli.demo.web_scenario import HttpScenario

PROGRAM = ServerProgram("prometheus", "prometheus")
NAME = "web"
METRIC = "requests-per-second"
PORT = 8080
REQUESTS_PER_S = 40.0
"""The load while there is any."""
REQUESTS_PER_POD = "10"
SCRAPE_PERIOD = "2s"
QUERY = 'sum(rate(http_requests_total{pod=~"web-.*"}[10s]))'
READY_TIMEOUT_S = 1.0

SERVER = f"""
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    requests = 0
    def do_GET(self):
        if self.path == "/metrics":
            body = "# TYPE http_requests_total counter\\nhttp_requests_total %d\\n" % Handler.requests
        else:
            Handler.requests += 1
            body = "OK!\\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer((os.environ["POD_IP"], {PORT}), Handler).serve_forever()
"""
"""The program of a pod: a web server that counts its requests, and serves the count at /metrics."""


class RequestsScenario(HttpScenario):
    """The server, the objects and the metric of `podscaler demo --scenario requests`; HttpScenario has the load."""

    name = NAME
    goal = "It followed the requests per second up and down again."
    requests_per_s = REQUESTS_PER_S

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._server: LocalServer | None = None

    def check(self) -> None:
        """Raise UsageError if Prometheus is not installed."""
        PROGRAM.path()

    async def start(self, control_plane: DemoControlPlane) -> None:
        """Start Prometheus. Raises UsageError."""
        folder = control_plane.folder / "prometheus"

        def make_arguments(port: int, folder: Path) -> Sequence[str]:
            _write_configuration(folder, control_plane)
            return _arguments(port, folder)

        self._server = await local_server.start(PROGRAM, folder, make_arguments, is_ready=_is_ready)

    def objects(self) -> Sequence[Object]:
        """Web servers with a Service, a MetricSource, and an autoscaler: 1 to 10 pods, ten requests a second each."""
        assert self._server is not None, "it was started"
        container = {
            "name": NAME,
            "image": "python",
            "command": [sys.executable, "-I", "-S", "-c", SERVER],
            "ports": [{"containerPort": PORT, "name": "metrics"}],
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        }
        source = {"url": f"http://{HOST}:{self._server.port}", "query": QUERY, "emptyValue": 0}
        return (
            demo_scenario.deployment(NAME, container),
            demo_scenario.service(NAME, port=PORT, target_port=PORT),
            demo_scenario.metric_source(METRIC, "prometheus", source),
            demo_scenario.autoscaler(NAME, demo_scenario.external_metric(METRIC, REQUESTS_PER_POD)),
        )

    def metric_text(self, status: Object) -> str:
        """` 9.9/s each`."""
        return f"{demo_scenario.average_value_text(status):>4}/s each"

    async def end(self) -> None:
        """End the requests, and Prometheus."""
        await super().end()
        if self._server is not None:
            await self._server.end()


def _write_configuration(folder: Path, control_plane: DemoControlPlane) -> None:
    """Write the configuration of Prometheus, in JSON, which is YAML, and the files that it names."""
    token, authorities = folder / "token", folder / "ca.crt"
    token.touch(mode=0o600)
    token.write_text(control_plane.token, encoding="utf-8")
    authorities.write_bytes(control_plane.authorities_pem)
    discovery = {
        "url": f"{control_plane.server_url}/podscaler/targets",
        "authorization": {"type": "Bearer", "credentials_file": str(token)},
        "tls_config": {"ca_file": str(authorities)},
        "refresh_interval": SCRAPE_PERIOD,
    }
    job = {"job_name": "pods", "scrape_interval": SCRAPE_PERIOD, "scrape_timeout": "1s", "http_sd_configs": [discovery]}
    configuration_json = json.dumps({"scrape_configs": [job]}, indent=1)
    (folder / "prometheus.yml").write_text(configuration_json, encoding="utf-8")


def _arguments(port: int, folder: Path) -> Sequence[str]:
    """The arguments of Prometheus: its configuration and data in the folder, and its port."""
    return (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={HOST}:{port}",
        "--log.level=warn",
    )


async def _is_ready(port: int) -> bool:
    """Whether Prometheus serves queries."""
    timeout = aiohttp.ClientTimeout(total=READY_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"http://{HOST}:{port}/-/ready") as response,
        ):
            return response.status == 200
    except (TimeoutError, aiohttp.ClientError):
        return False
