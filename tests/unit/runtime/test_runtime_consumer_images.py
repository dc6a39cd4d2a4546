"""The programs of the image resource-consumer, and of the controller that splits requests for it."""

from email.message import Message

import pytest

from podscaler.controlplane.kubelet.programs import resource_consumer
from podscaler.controlplane.kubelet.programs.resource_consumer import BumpedMetrics, Consumers, ResourceConsumer
from podscaler.controlplane.kubelet.programs.resource_consumer_controller import (
    ConsumerController,
    cluster_domain,
    split,
)
from podscaler.controlplane.kubelet.programs.web_server import WebRequest


def post(path: str, method: str = "POST", **form: str) -> WebRequest:
    return WebRequest(method, path, "", form, Message(), b"", ("127.0.0.1", 1))


class StartedConsumers(Consumers):
    """Notes the processes that it is asked to start, and starts none."""

    def __init__(self, *, accepts: bool = True) -> None:
        super().__init__([])
        self.started: list[tuple[str, int, int]] = []
        self._accepts = accepts

    def start(self, function: str, amount: int, duration_s: int) -> bool:
        """Note the call."""
        self.started.append((function, amount, duration_s))
        return self._accepts


@pytest.mark.parametrize(
    ("request_", "status", "text", "started"),
    [
        pytest.param(
            post("/ConsumeCPU", millicores="300", durationSec="10"),
            200,
            "ConsumeCPU\n300 millicores\n10 durationSec\n",
            [("millicores", 300, 10)],
            id="CPU",
        ),
        pytest.param(
            post("/ConsumeMem", megabytes="5", durationSec="10"),
            200,
            "ConsumeMem\n5 megabytes\n10 durationSec\n",
            [("megabytes", 5, 10)],
            id="memory",
        ),
        pytest.param(
            post("/BumpMetric", metric="QPS", delta="2.5", durationSec="10"),
            200,
            "BumpMetric\nQPS metric\n2.5 delta\n10 durationSec\n",
            [],
            id="metric",
        ),
        pytest.param(
            post("/ConsumeCPU", millicores="3"), 400, "not given function argument\n", [], id="missing parameter"
        ),
        pytest.param(
            post("/ConsumeMem", megabytes="x", durationSec="1"),
            400,
            "incorrect function argument\n",
            [],
            id="not a number",
        ),
        pytest.param(post("/Other"), 404, "unknown function: /Other\n", [], id="another path"),
        pytest.param(post("/ConsumeCPU", "GET"), 400, "Bad request. Not a POST request\n", [], id="GET"),
        pytest.param(
            post("/GetCurrentStatus"), 200, "Warning: not implemented!\nGetCurrentStatus", [], id="current status"
        ),
    ],
)
def test_requests(request_: WebRequest, status: int, text: str, started: list[tuple[str, int, int]]) -> None:
    """Upstream's responses; a valid request starts one process."""
    consumers = StartedConsumers()
    response = ResourceConsumer(consumers).respond(request_)
    assert (response.status, response.text, consumers.started) == (status, text, started)


def test_too_many_processes() -> None:
    """A request above the limit is refused and leaves the others alone."""
    response = ResourceConsumer(StartedConsumers(accepts=False)).respond(
        post("/ConsumeCPU", millicores="1", durationSec="1")
    )
    assert response.status == 503


def test_bumped_metrics_add_up() -> None:
    """Deltas of one metric are added, in Prometheus' text format."""
    metrics = BumpedMetrics()
    assert [metrics.bump("QPS", delta, 3600) for delta in (10.0, 2.5)] == [True, True]
    assert metrics.text() == "# HELP QPS info message.\n# TYPE QPS gauge\nQPS 12.500000\n"


def test_metrics_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """New names are refused above the limit, known ones are not."""
    monkeypatch.setattr(resource_consumer, "METRICS_MAX", 1)
    metrics = BumpedMetrics()
    assert [metrics.bump(name, 1.0, 3600) for name in ("a", "b", "a")] == [True, False, True]


@pytest.mark.parametrize(
    ("amount", "size", "parts"),
    [(250, 100, [100, 100, 50]), (200, 100, [100, 100]), (50, 100, [50]), (0, 100, []), (-5, 100, [])],
)
def test_splitting(amount: int, size: int, parts: list[int]) -> None:
    """Full requests come first, the rest is last."""
    assert split(amount, size) == parts


def test_the_controller_sends_the_parts() -> None:
    """Each part is posted with the parameters of the request; failures are lines of the response."""
    sent = []

    def send(path: str, form: dict[str, str]) -> None:
        sent.append((path, form))
        if form["millicores"] == "50":
            raise ConnectionRefusedError(111, "Connection refused")

    response = ConsumerController(send).respond(
        post("/ConsumeCPU", millicores="150", durationSec="30", requestSizeMillicores="100")
    )
    assert sorted(sent, key=lambda each: each[1]["millicores"]) == [
        ("/ConsumeCPU", {"millicores": "100", "durationSec": "30"}),
        ("/ConsumeCPU", {"millicores": "50", "durationSec": "30"}),
    ]
    assert response.text == (
        "RC manager: sending 2 requests to consume 150 millicores\nConsumed 100 millicores\n"
        "Failed to connect to consumer: [Errno 111] Connection refused\n"
    )


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(post("/ConsumeCPU", "GET"), 400, id="GET"),
        pytest.param(post("/metrics"), 404, id="another path"),
        pytest.param(post("/ConsumeMem", megabytes="5", durationSec="1"), 400, id="no size"),
        pytest.param(
            post("/ConsumeMem", megabytes="5", durationSec="1", requestSizeMegabytes="0"), 400, id="size of zero"
        ),
        pytest.param(
            post("/ConsumeMem", megabytes="1000", durationSec="1", requestSizeMegabytes="1"), 400, id="too many parts"
        ),
        pytest.param(
            post("/BumpMetric", delta="5", durationSec="1", requestSizeMetrics="1"), 400, id="metric without a name"
        ),
    ],
)
def test_requests_that_the_controller_refuses(request_: WebRequest, status: int) -> None:
    """Nothing is sent for an invalid request."""
    sent: list[str] = []
    response = ConsumerController(lambda path, _: sent.append(path)).respond(request_)
    assert (response.status, sent) == (status, [])


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("nameserver 1.2.3.4\nsearch ns.svc.a.b svc.a.b a.b\n", "a.b"),
        ("search example.com\n", "cluster.local"),
        ("", "cluster.local"),
    ],
)
def test_the_domain_of_the_cluster(text: str, domain: str) -> None:
    """The search list names it; cluster.local is the default."""
    assert cluster_domain(text) == domain


def test_memory_includes_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of the interpreter counts as a part of what is used, as the autoscaler sees both."""
    seen: list[int] = []
    monkeypatch.setattr(resource_consumer.time, "sleep", lambda _: seen.append(resource_consumer.resident_bytes()))
    megabytes = (resource_consumer.resident_bytes() >> 20) + 64
    resource_consumer.consume_memory(megabytes, 30)
    assert [round(used / (1 << 20) / megabytes, 1) for used in seen] == [1.0]
