"""The node's HTTPS endpoints: their bodies, who may read them, and their port."""

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from own_ports import own_address
from podscaler.base.clock import NANOSECONDS, SystemClock
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.auth.authorizer import Authorizer
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PolicyIndex
from podscaler.controlplane.credentials import certificates
from podscaler.controlplane.kubelet.server import (
    cadvisor_metrics,
    kubelet_pages,
    node_server,
    resource_metrics,
    stats_summary,
)
from podscaler.controlplane.kubelet.server.node_access import NodeAccess, subresources_of
from podscaler.controlplane.kubelet.server.node_server import NodeServer
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot, UsageTotal
from podscaler.controlplane.registry.users import ADMIN, User
from podscaler.controlplane.storage import entries

S = NANOSECONDS
SNAPSHOT = UsageSnapshot(
    "vm",
    1_767_225_600 * S,
    UsageTotal(1_767_000_000 * S, 20 * S, 1_500_000_000, 4096),
    (
        PodTotal(
            "default",
            "web",
            "uid-web",
            "2026-01-01T00:00:00Z",
            {"c": UsageTotal(1_767_225_000 * S, 1_250_000_000, None, 2048)},
        ),
    ),
)
TEXT = """\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="c",namespace="default",pod="web"} 1.25 1767225600000
# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="c",namespace="default",pod="web"} 2048 1767225600000
# HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="c",namespace="default",pod="web"} 1767225000
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 20 1767225600000
# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 4096 1767225600000
# HELP pod_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the pod in core-seconds
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="default",pod="web"} 1.25 1767225600000
# HELP pod_memory_working_set_bytes [STABLE] Current working set of the pod in bytes
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="default",pod="web"} 2048 1767225600000
# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
"""
TIME = "2026-01-01T00:00:00Z"


def test_resource_metrics_are_those_of_a_kubelet() -> None:
    """Names, help texts and label order are the kubelet's; readings have their time, in milliseconds."""
    assert resource_metrics.render(SNAPSHOT).decode() == TEXT


def test_resource_metrics_before_the_first_reading() -> None:
    """There is nothing but the error."""
    assert resource_metrics.render(None).decode().splitlines()[2:] == ["resource_scrape_error 1"]


def test_the_summary_has_the_usage_of_node_pods_and_containers() -> None:
    """A rate that is not known yet is left out."""
    memory = {"time": TIME, "usageBytes": 2048, "workingSetBytes": 2048, "rssBytes": 2048}
    used = {"cpu": {"time": TIME, "usageCoreNanoSeconds": 1_250_000_000}, "memory": memory}
    container = {"name": "c", "startTime": "2025-12-31T23:50:00Z", **used}
    found = json.loads(stats_summary.render(SNAPSHOT))
    assert found["node"]["cpu"] == {"time": TIME, "usageNanoCores": 1_500_000_000, "usageCoreNanoSeconds": 20 * S}
    assert found["pods"] == [
        {
            "podRef": {"name": "web", "namespace": "default", "uid": "uid-web"},
            "startTime": TIME,
            "containers": [container],
            **used,
        }
    ]


@pytest.mark.parametrize(
    ("path", "subresources"),
    [
        ("/metrics/resource", "metrics"),
        ("/metrics", "metrics"),
        ("/stats/summary", "stats"),
        ("/metricsfoo", "proxy"),
        ("//metrics", "proxy"),
        ("/pods", "pods proxy"),
        ("/healthz/ping", "healthz proxy"),
        ("/runningpods/", "pods proxy"),
        ("/configz", "configz proxy"),
        ("/flagz", "configz"),
        ("/logs/syslog", "log"),
        ("/exec/a/b/c", "proxy"),
        ("/", "proxy"),
    ],
)
def test_the_subresources_of_a_path(path: str, subresources: str) -> None:
    """They are those of the first part of the path."""
    assert " ".join(subresources_of(path)) == subresources


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
    "spec": {"containers": [{"name": "c", "image": 'a"b', "resources": {"limits": {"cpu": "1500m", "memory": "1Mi"}}}]},
    "status": {"containerStatuses": [{"name": "c", "containerID": "podscaler://id-c"}]},
}


def test_cadvisor_metrics_of_machine_pod_and_container() -> None:
    """Each has a row with the labels that dashboards select; label values are escaped."""
    lines = cadvisor_metrics.render(SNAPSHOT, [POD]).decode().splitlines()
    none = 'container="",cpu="total",id="{}",image="",name="",namespace="{}",pod="{}"'
    of_pod = none.format("/kubepods/poduid-web", "default", "web")
    own = 'container="c"{},id="/kubepods/poduid-web/id-c",image="a\\"b",name="id-c",namespace="default",pod="web"'
    assert [line for line in lines if line.startswith("container_cpu_usage_seconds_total")] == [
        f"container_cpu_usage_seconds_total{{{none.format('/', '', '')}}} 20 1767225600000",
        f"container_cpu_usage_seconds_total{{{of_pod}}} 1.25 1767225600000",
        "container_cpu_usage_seconds_total{" + own.format(',cpu="total"') + "} 1.25 1767225600000",
    ]
    assert [line for line in lines if line.startswith("container_spec")] == [
        "container_spec_cpu_period{" + own.format("") + "} 100000",
        "container_spec_cpu_quota{" + own.format("") + "} 150000",
        "container_spec_cpu_shares{" + own.format("") + "} 1536",
        "container_spec_memory_limit_bytes{" + own.format("") + "} 1048576",
    ]


def test_cadvisor_metrics_before_the_first_reading() -> None:
    """There are the version and the error."""
    lines = cadvisor_metrics.render(None, []).decode().splitlines()
    assert [line.partition("{")[0].partition(" ")[0] for line in lines if line[0] != "#"] == [
        "cadvisor_version_info",
        "container_scrape_error",
    ]
    assert lines[-1] == "container_scrape_error 1"


async def test_the_pages_of_the_node_itself() -> None:
    """Health is plain text, items of the PodList have no type, and the gauges count what runs."""
    pages = kubelet_pages.kubelet_pages(lambda: SNAPSHOT, lambda: [POD], lambda: "vm")
    assert await pages["/healthz/syncloop"].render() == b"ok"
    item = {name: POD[name] for name in ("metadata", "spec", "status")}
    expected = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [item]}
    assert json.loads(await pages["/pods"].render()) == expected
    lines = (await pages["/metrics"].render()).decode().splitlines()
    assert [line for line in lines if line.startswith("kube")] == [
        'kubelet_node_name{node="vm"} 1.0',
        "kubelet_running_pods 1.0",
        'kubelet_running_containers{container_state="running"} 1.0',
        'kubernetes_build_info{git_version="v1.37.0"} 1.0',
    ]
    assert b"kubelet" not in await pages["/metrics/probes"].render()


def _policy() -> PolicyIndex:
    """One that lets ann read nodes/metrics and nodes/healthz of the node vm."""
    group = "rbac.authorization.k8s.io"
    resources = ["nodes/metrics", "nodes/healthz"]
    rule = {"apiGroups": [""], "resources": resources, "resourceNames": ["vm"], "verbs": ["get"]}
    role = {"metadata": {"name": "reader"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "ann"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": group}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reader"},
    }
    index = PolicyIndex()
    index.put(entries.from_object(CLUSTER_ROLES, role, 1))
    index.put(entries.from_object(CLUSTER_ROLE_BINDINGS, binding, 1))
    return index


ACCESS = NodeAccess(Authenticator({"t-ann": User("ann"), "t-admin": ADMIN}), Authorizer(_policy()))


def _request(path: str, headers: dict[str, str], certificate: Any = None, method: str = "GET") -> Any:
    transport = SimpleNamespace(get_extra_info=lambda _: certificate)
    return SimpleNamespace(method=method, path=path, headers=headers, transport=transport)


@pytest.mark.parametrize(
    ("request_", "rejection"),
    [
        pytest.param(_request("/metrics/resource", {"Authorization": "Bearer t-ann"}), None, id="with the permission"),
        pytest.param(_request("/pods", {"Authorization": "Bearer t-admin"}), None, id="an administrator"),
        pytest.param(_request("/healthz", {"Authorization": "Bearer t-ann"}), None, id="one of two subresources"),
        pytest.param(
            _request("/pods", {"Authorization": "Bearer t-ann"}),
            (403, "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"),
            id="none of two subresources",
        ),
        pytest.param(
            _request("/metrics/resource", {}, {"subject": ((("commonName", "ann"),),)}), None, id="a certificate"
        ),
        pytest.param(
            _request("/metrics/resource", {"Authorization": "Bearer other"}), (401, "Unauthorized"), id="unknown token"
        ),
        pytest.param(
            _request("/stats/summary", {"Authorization": "Bearer t-ann"}),
            (403, "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[stats])\n"),
            id="another subresource",
        ),
        pytest.param(
            _request("/metrics/resource", {"Authorization": "Bearer t-ann"}, method="POST"),
            (403, "Forbidden (user=ann, verb=create, resource=nodes, subresource(s)=[metrics])\n"),
            id="another verb",
        ),
        pytest.param(
            _request("/metrics/resource", {}),
            (403, "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n"),
            id="anonymous",
        ),
    ],
)
def test_requests_are_authorized_as_subresources_of_the_node(request_: Any, rejection: Any) -> None:
    """The status and the text are the kubelet's."""
    assert ACCESS.rejection(request_, "vm") == rejection


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """The address of a server, and the TLS settings of a client that trusts its authority."""
    address, now_ns = own_address(), SystemClock().now_ns()
    authority = certificates.authority_of(tmp_path, now_ns=now_ns)

    def tls(node_name: str) -> ssl.SSLContext:
        return certificates.node_context(tmp_path, node_name, address, now_ns=now_ns)

    pages = {resource_metrics.PATH: resource_metrics.resource_metrics_page(lambda: SNAPSHOT)}
    served = NodeServer(address, pages, ACCESS, make_tls_context=tls)
    port = await served.start("vm")
    assert await served.start("vm") == port
    yield f"https://{address}:{port}", ssl.create_default_context(cadata=authority.decode())
    await served.stop()


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/metrics/resource", "GET", 200), ("/nowhere", "GET", 404), ("/metrics/resource", "POST", 405)],
)
async def test_the_pages_over_https(server: tuple[str, ssl.SSLContext], path: str, method: str, status: int) -> None:
    """The certificate is for the node's address; another page is not found."""
    url, context = server
    headers = {"Authorization": "Bearer t-admin"}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url + path, ssl=context, headers=headers) as response,
    ):
        assert response.status == status
        assert status != 200 or await response.text() == TEXT


async def test_another_port_where_10250_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second server of one address gets a free port."""
    address, now_ns = own_address(), SystemClock().now_ns()
    tls = certificates.node_context(tmp_path, "vm", address, now_ns=now_ns)
    with node_server.socket.create_server((address, 0)) as taken:
        monkeypatch.setattr(node_server, "PORT", taken.getsockname()[1])
        served = NodeServer(address, {}, ACCESS, make_tls_context=lambda _: tls)
        port = await served.start("vm")
        assert port != taken.getsockname()[1]
    await served.stop()
