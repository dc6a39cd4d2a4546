"""The adapter's server over HTTPS: who may ask, how errors look, discovery, health and its own metrics."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from adapter_world import CUSTOM, AdapterWorld

from podscaler.adapter.assembly import AdapterServers, AdapterSettings, new_adapter
from podscaler.adapter.config import config_file
from podscaler.adapter.server import request_info
from podscaler.adapter.server.access import ExtensionAccess
from podscaler.kube.client.client import Client
from podscaler.kube.serving import delegated_access
from podscaler.kube.serving.delegated_access import AccessAttributes, DelegatedAccess
from podscaler.kube.serving.front_proxy import FrontProxyAuthentication
from podscaler.kube.serving.serving_certificate import self_signed_context
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.transport import json_answer
from tcp_server import serving

USERS = {"ops": {"username": "ops"}, "dev": {"username": "dev"}, "root": {"groups": ["system:masters"]}}
HITS = f"{CUSTOM}/pods/web-1/hits"


class GuardedWorld(AdapterWorld):
    """A world whose API server knows three tokens: `ops` may read all metrics, `dev` those of pods in `default`."""

    address = ""
    """`HOST:PORT` of the adapter's server; empty before it listens."""

    def __init__(self) -> None:
        super().__init__()
        self.kubernetes.on("POST", delegated_access.AUTHENTICATION_REVIEWS, self._identity)
        self.kubernetes.on("POST", delegated_access.ACCESS_REVIEWS, self._access)
        self.context = self_signed_context(["localhost"])
        client = Client(self.kubernetes, self.clock)
        reviews = DelegatedAccess(client, self.clock)
        front_proxy = FrontProxyAuthentication(client, self.clock, self.context)
        servers = AdapterServers(self.database, client, ExtensionAccess(front_proxy, reviews, reviews), lambda: ["x"])
        rules = config_file.parse(
            "rules: [{seriesQuery: 'hits{pod!=\"\"}', resources: {template: <<.Resource>>}}]", "f"
        )
        self.adapter = new_adapter(rules, AdapterSettings(watches=False), servers, self.clock)
        self.reviews: list[dict[str, Any]] = []

    def _identity(self, request: Request) -> Response:
        user = USERS.get(msgspec.json.decode(request.body or b"")["spec"]["token"])
        return json_answer({"status": {"authenticated": user is not None, "user": user or {}}}, 201)

    def _access(self, request: Request) -> Response:
        spec = msgspec.json.decode(request.body or b"")["spec"]
        self.reviews.append(spec)
        asked = spec.get("resourceAttributes", {})
        is_dev = (spec.get("user"), asked.get("namespace"), asked.get("resource")) == ("dev", "default", "pods")
        return json_answer({"status": {"allowed": spec.get("user") == "ops" or is_dev}}, 201)


@pytest.fixture
async def world() -> AsyncIterator[GuardedWorld]:
    """A started world, whose server listens."""
    guarded = GuardedWorld()
    await guarded.started()
    guarded.address = await guarded.adapter.server.start("127.0.0.1", 0, guarded.context)
    yield guarded
    await guarded.adapter.server.stop()


async def ask(world: GuardedWorld, path: str, token: str = "", **headers: str) -> tuple[int, Any]:
    """Status and body of a response."""
    sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
    url = f"https://{world.address}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=sent, ssl=False) as response:
        is_json = response.content_type == "application/json"
        return response.status, await response.json() if is_json else await response.text()


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        ("", "/healthz", 200),
        ("", "/livez", 200),
        ("", "/readyz", 503),
        ("", HITS, 403),
        ("wrong", HITS, 401),
        ("ops", "/metrics", 200),
        ("", "/metrics", 403),
        ("root", "/apis", 200),
        ("root", "/apis/custom.metrics.k8s.io/v1beta2", 200),
        ("root", "/apis/custom.metrics.k8s.io/v1", 404),
        ("root", "/apis/external.metrics.k8s.io", 404),
        ("root", "/openapi/v2", 200),
        ("root", "/nothing", 404),
        ("dev", HITS, 404),
        ("dev", HITS.replace("default", "shop"), 403),
    ],
)
async def test_who_may_ask(world: GuardedWorld, token: str, path: str, status: int) -> None:
    """Health is for everybody; the API server decides about everything else."""
    assert (await ask(world, path, token))[0] == status


async def test_headers_of_a_front_proxy_count_for_nobody_else(world: GuardedWorld) -> None:
    """A request without the certificate of the front proxy is anonymous, whatever its headers say."""
    spoofed = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert (await ask(world, HITS, **spoofed))[0] == 403


async def test_a_rejection(world: GuardedWorld) -> None:
    """The Status of a rejected request is that of an API server."""
    _, body = await ask(world, HITS.replace("default", "shop"), "dev")
    text = (
        'pods.custom.metrics.k8s.io "web-1" is forbidden: User "dev" cannot get resource "pods/hits" in API group '
        '"custom.metrics.k8s.io" in the namespace "shop"'
    )
    details = {"name": "web-1", "group": "custom.metrics.k8s.io", "kind": "pods"}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": text}
    assert body == {**status, "reason": "Forbidden", "details": details, "code": 403}


async def test_one_review_for_all_metrics(world: GuardedWorld) -> None:
    """A user who may read everything of the group costs one review, not one for each request."""
    for number in range(5):
        await ask(world, f"{CUSTOM}/pods/web-{number}/hits", "ops")
    everything = {"verb": "get", "group": "custom.metrics.k8s.io", "version": "v1beta1"}
    everything |= {"resource": "*", "subresource": "*"}
    assert [each["resourceAttributes"] for each in world.reviews] == [everything]


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("*/*", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", 406),
    ],
)
async def test_only_json(world: GuardedWorld, accept: str, status: int) -> None:
    """A client that does not accept JSON gets 406."""
    assert (await ask(world, "/apis", "root", Accept=accept))[0] == status


async def test_a_bug_fails_one_request(world: GuardedWorld, caplog: pytest.LogCaptureFixture) -> None:
    """An exception is a 500 with its traceback in the log; the next request is served."""
    world.adapter.relisting.registry = None  # type: ignore[assignment]  # a bug
    assert (await ask(world, "/apis/custom.metrics.k8s.io/v1beta1", "root"))[0] == 500
    assert "a request failed because of a bug" in caplog.text
    assert (await ask(world, "/apis", "root"))[0] == 200


async def test_own_metrics(world: GuardedWorld) -> None:
    """Requests are counted by group and status, those to Prometheus by endpoint."""
    await ask(world, HITS, "root")
    _, text = await ask(world, "/metrics", "root")
    assert 'podscaler_adapter_requests_total{code="404",group="custom.metrics.k8s.io"} 1.0' in text
    assert 'podscaler_adapter_prometheus_requests_total{endpoint="series",result="success"} 1.0' in text
    assert "podscaler_adapter_rule_errors 0.0" in text


@pytest.mark.parametrize(
    ("path", "attributes"),
    [
        ("/apis", AccessAttributes("get", "/apis")),
        ("/apis/g/v", AccessAttributes("get", "/apis/g/v")),
        ("/apis/g/v/namespaces/n/pods/%2A/m", AccessAttributes("get", "", "g", "v", "n", "pods", "m", "*")),
        ("/apis/g/v/namespaces/n/metrics/m", AccessAttributes("get", "", "g", "v", "n", "metrics", "", "m")),
        ("/apis/g/v/namespaces/n/m", AccessAttributes("list", "", "g", "v", "n", "m")),
        ("/apis/g/v/namespaces/n/m?watch=true", AccessAttributes("watch", "", "g", "v", "n", "m")),
        ("/apis/g/v/nodes/a/m", AccessAttributes("get", "", "g", "v", "", "nodes", "m", "a")),
        ("/apis/g/v/nodes", AccessAttributes("list", "", "g", "v", "", "nodes")),
        ("/apis/g/v/namespaces/n", AccessAttributes("get", "", "g", "v", "n", "namespaces", "", "n")),
    ],
)
def test_what_a_request_is_about(path: str, attributes: AccessAttributes) -> None:
    """Verb, group, namespace, resource, name and subresource, as the API server's authorizer sees them."""
    where, _, query = path.partition("?")
    assert request_info.parse("GET", where, query).attributes == attributes


def test_the_certificate_in_memory() -> None:
    """Clients can connect with the certificate that is made where none is given."""

    async def close(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        return

    async def handshake() -> str:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        async with serving(close, context=self_signed_context(["a"])) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            version = writer.get_extra_info("ssl_object").version()
            writer.close()
            await writer.wait_closed()
        return str(version)

    assert asyncio.run(handshake()) == "TLSv1.3"


@pytest.mark.parametrize("metric", ["hits", "no-such-metric"])
async def test_objects_are_listed_for_metrics_that_exist(metric: str) -> None:
    """A request for any other metric sends none to the API server, whatever kind it names."""
    world = await AdapterWorld().started()
    before = len(world.kubernetes.requests)
    await world.get(f"{CUSTOM}/pods/*/{metric}")
    assert len(world.kubernetes.requests) - before == (1 if metric == "hits" else 0)
