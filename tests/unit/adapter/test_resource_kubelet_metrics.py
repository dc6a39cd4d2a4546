"""Usage from kubelets as the adapter serves it: flags, the parts that run, and the provider of metrics.k8s.io."""

import asyncio
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podscaler.adapter.cluster import rest_mapper
from podscaler.adapter.cluster.object_names import ObjectNames
from podscaler.adapter.cluster.rest_mapper import RESTMapper
from podscaler.adapter.naming.resource_labels import NODES, PODS
from podscaler.adapter.resource import kubelet_metrics
from podscaler.adapter.resource.kubelet_client import KubeletTransports
from podscaler.adapter.resource.kubelet_metrics import KubeletMetrics, ScrapeSettings
from podscaler.adapter.resource.kubelet_points import NodePoints, UsagePoint
from podscaler.adapter.resource.kubelet_usage import KubeletUsage
from podscaler.adapter.resource.node_targets import KubeletAddressing
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.api.machinery.quantity import Format, Quantity
from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.options.flags import flag_group
from podscaler.cli.options.kubelet_options import KUBELET_OPTIONS, parse_kubelets
from podscaler.kube.client.client import Client
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import bearer
from podscaler.kube.transport.transport import Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import Feed, ScriptedTransport, json_answer

S = 10**9
CLUSTER = Config("https://api", credentials=bearer("t"), ca_pem=b"cluster", proxy="http://proxy", origin="kubeconfig")


def _parsed(*arguments: str) -> ScrapeSettings | None:
    found: list[ScrapeSettings | None] = []

    @click.command()
    @flag_group(*KUBELET_OPTIONS)
    def command(**values: Any) -> None:
        found.append(parse_kubelets(values, CLUSTER))

    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_without_the_flag() -> None:
    """No kubelet is scraped."""
    assert _parsed() is None


def test_defaults() -> None:
    """They are metrics-server's; kubelets are verified by the authorities of the cluster."""
    found = _parsed("--resource")
    assert found is not None
    assert (found.addressing, found.resolution_s, found.timeout_s) == (KubeletAddressing(), 15.0, 10.0)
    assert (found.config.ca_pem, found.config.verify) == (b"cluster", True)


def test_every_flag(tmp_path: Path) -> None:
    """Each changes what it names."""
    (tmp_path / "ca").write_bytes(b"kubelets")
    found = _parsed(
        "--resource",
        "--metric-resolution=30s",
        "--kubelet-request-timeout=5s",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        "--kubelet-port=10255",
        "--kubelet-use-node-status-port",
        f"--kubelet-certificate-authority={tmp_path / 'ca'}",
    )
    assert found is not None
    assert found.addressing == KubeletAddressing(("InternalIP", "Hostname"), 10255, uses_status_port=True)
    assert (found.resolution_s, found.timeout_s, found.config.ca_pem) == (30.0, 5.0, b"kubelets")


def test_certificates_that_are_not_verified() -> None:
    """That is for tests alone."""
    found = _parsed("--resource", "--kubelet-insecure-tls")
    assert found is not None
    assert not found.config.verify


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--metric-resolution=500ms",), "--metric-resolution must be at least 1s"),
        (("--kubelet-request-timeout=0s",), "--kubelet-request-timeout must be greater than 0 and at most"),
        (("--kubelet-request-timeout=16s",), "--kubelet-request-timeout must be greater than 0 and at most"),
        (("--kubelet-port=0",), "--kubelet-port must be between 1 and 65535, but got 0"),
        (("--kubelet-preferred-address-types=Ip",), 'invalid argument "Ip" for "--kubelet-preferred-address-types"'),
        (("--kubelet-certificate-authority=/none",), "--kubelet-certificate-authority /none: No such file"),
        (
            ("--kubelet-certificate-authority=/dev/null", "--kubelet-insecure-tls"),
            "--kubelet-certificate-authority and --kubelet-insecure-tls exclude each other",
        ),
    ],
)
def test_wrong_flags(arguments: tuple[str, ...], text: str) -> None:
    """Each is one sentence."""
    with pytest.raises(UsageError) as caught:
        _parsed("--resource", *arguments)
    assert str(caught.value).startswith(text)


async def test_transports_to_kubelets() -> None:
    """They have the credentials, and neither proxy nor impersonation."""
    transports = KubeletTransports(Config("https://api", proxy="http://proxy"), user_agent="test")
    transport = await transports.open("http://10.0.0.1:10255")
    assert transport.server == "http://10.0.0.1:10255"
    await transport.close()
    wrong = KubeletTransports(Config("https://api", ca_pem=b"no certificate", origin="kubelets"), user_agent="test")
    with pytest.raises(UsageError, match="kubelets: certificate-authority"):
        await wrong.open("https://10.0.0.1:10250")


async def test_the_parts_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are watched, their kubelets are scraped; before the first round nothing is ready."""
    clock, api, kubelet = VirtualClock(0), ScriptedTransport(), ScriptedTransport("https://10.0.0.1:10250")
    status = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    node = {"metadata": {"name": "n", "resourceVersion": "1"}, "status": status}
    api.on("GET", "/api/v1/nodes", json_answer({"metadata": {"resourceVersion": "1"}, "items": [node]}), Feed())
    text = b"node_cpu_usage_seconds_total %d %d000\nnode_memory_working_set_bytes 5 %d000\n"
    kubelet.on("GET", "/metrics/resource", Response(200, {}, text % (1, 10, 10)), Response(200, {}, text % (2, 12, 12)))

    async def open_kubelet(self: KubeletTransports, server: str) -> ScriptedTransport:
        del self, server
        return kubelet

    monkeypatch.setattr(KubeletTransports, "open", open_kubelet)
    settings = ScrapeSettings(CLUSTER, KubeletAddressing(("InternalIP",)))
    metrics = KubeletMetrics(settings, Client(api, clock), clock, user_agent="test")
    before = metrics.unready()
    task = asyncio.create_task(metrics.run())
    await clock.advance(0, turns=50)
    await clock.advance(15, turns=50)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    found = metrics.storage.find_node("n")
    assert (before, metrics.unready(), found and found.cpu_nanocores) == ([kubelet_metrics.NOT_SCRAPED], [], S // 2)


def _usage() -> KubeletUsage:
    """The usage of the pod web and of the node n; the pods new and pending have none."""
    transport, clock, storage = ScriptedTransport(), VirtualClock(), UsageStorage(15 * S)
    phases = {"web": "Running", "new": "Running", "pending": "Pending"}
    pods = [
        {"metadata": {"name": name, "namespace": "ns", "labels": {"app": name}}, "status": {"phase": phase}}
        for name, phase in phases.items()
    ]
    transport.on("GET", "/api/v1/namespaces/ns/pods", json_answer({"items": pods}))
    transport.on("GET", "/api/v1/nodes", json_answer({"items": [{"metadata": {"name": "n"}}]}))
    for at_s, cpu_s in ((10, 1), (20, 6)):
        point = UsagePoint(0, at_s * S, cpu_s * S, 2048)
        storage.store("n", NodePoints(point, {("ns", "web"): {"a": point}, ("ns", "pending"): {"a": point}}), at_s * S)
    mapper = RESTMapper(Client(transport, clock))
    mapper.mapping = rest_mapper.mapping_of({"pods": ("v1", "Pod", True), "nodes": ("v1", "Node", False)})
    return KubeletUsage(storage, mapper, ObjectNames(Client(transport, clock), clock, watches=False))


AMOUNTS = {"cpu": Quantity(S // 2, -9), "memory": Quantity(2048, 0, Format.BINARY_SI)}


async def test_usage_of_pods_and_nodes() -> None:
    """Running pods with usage, and nodes, in the units of metrics.k8s.io."""
    usage = _usage()
    (pod,), (node,) = await usage.of_pods("ns"), await usage.of_nodes()
    assert (pod.described.metadata.name, pod.at_ns, pod.window_ns) == ("web", 20 * S, 10 * S)
    assert (dict(pod.by_container), dict(node.by_container)) == ({"a": AMOUNTS}, {"": AMOUNTS})


async def test_objects_by_name() -> None:
    """Pods that do not run are not there; a node that is not there has its own error."""
    usage = _usage()
    web, pending = [await usage.find_object(PODS, "ns", name) for name in ("web", "pending")]
    assert (web and web.metadata.name, pending) == ("web", None)
    new = await usage.find_object(PODS, "ns", "new")
    assert new is not None
    assert await usage.of_object(PODS, new) is None
    with pytest.raises(StatusError, match=r'^node "m" not found$'):
        await usage.find_object(NODES, "", "m")


async def test_an_api_server_whose_resources_are_not_known() -> None:
    """That is an error of the server, not an empty list."""
    clock, transport = VirtualClock(), ScriptedTransport()
    client = Client(transport, clock)
    usage = KubeletUsage(UsageStorage(15 * S), RESTMapper(client), ObjectNames(client, clock, watches=False))
    with pytest.raises(StatusError, match="failed listing pods"):
        await usage.of_pods("ns")
