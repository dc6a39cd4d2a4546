"""What pods expose, as the custom metrics API tells it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrape_world import ScrapeWorld, scrape_world

from podscaler.base.errors import StatusError
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeError


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ScrapeWorld]:
    """A world without pods."""
    async with scrape_world(tmp_path) as opened:
        yield opened


async def test_gauges_and_rates_of_pods(world: ScrapeWorld) -> None:
    """Gauges as they are, with the first scrape; counters as rates, with the second."""
    await world.run_pod("web-1", "depth 7.5\nhttp_requests_total 100\n")
    assert world.values("pods", "*", "depth") == {"web-1": "7500m"}
    with pytest.raises(StatusError, match=r"^the server could not find the metric http_requests for pods$"):
        world.values("pods", "*", "http_requests")
    world.bodies["web-1"] = "depth 8\nhttp_requests_total 150\n"
    await world.rounds(1)
    assert world.values("pods", "*", "http_requests") == {"web-1": "5"}
    assert world.asked[:1] == ["http://web-1:9090/metrics"]


async def test_labels_of_samples(world: ScrapeWorld) -> None:
    """Series of one pod add up; metric selectors choose among them."""
    await world.run_pod("web-1", 'depth{queue="a"} 3\ndepth{queue="b"} 4\n')
    assert world.values("pods", "web-1", "depth") == {"web-1": "7"}
    assert world.values("pods", "web-1", "depth", metric_label_selector="queue=b") == {"web-1": "4"}


async def test_pods_are_selected(world: ScrapeWorld) -> None:
    """By their labels, as every custom metric."""
    await world.run_pod("web-1", "depth 1\n", app="web")
    await world.run_pod("db-1", "depth 2\n", app="db")
    assert world.values("pods", "*", "depth", label_selector="app=db") == {"db-1": "2"}


async def test_objects_that_pods_stand_behind(world: ScrapeWorld) -> None:
    """Sums over the pods of a Service, Deployment, Ingress and namespace."""
    create = world.registry.create
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = await create("deployments.apps", {"metadata": named("web"), "spec": spec})
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment["metadata"]["uid"]}
    metadata = {**named("web-5d"), "ownerReferences": [{**reference, "controller": True}]}
    replica_set = await create("replicasets.apps", {"metadata": metadata, "spec": spec})
    await create("services", {"metadata": named("web"), "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    await create("services", {"metadata": named("none"), "spec": {"ports": [{"port": 80}]}})
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    await create("ingresses.networking.k8s.io", {"metadata": named("main"), "spec": {"defaultBackend": backend}})
    await world.run_pod("web-1", "depth 1\n", replica_set, app="web")
    await world.run_pod("web-2", "depth 2.5\n", replica_set, app="web")
    await world.run_pod("db-1", "depth 4\n", app="db")
    assert {
        "services": world.values("services", "*", "depth"),
        "service": world.values("services", "web", "depth"),
        "deployment": world.values("deployments.apps", "web", "depth"),
        "ingress": world.values("ingresses.networking.k8s.io", "main", "depth"),
        "namespace": world.values("metrics", "depth"),
    } == {
        "services": {"web": "3500m"},
        "service": {"web": "3500m"},
        "deployment": {"web": "3500m"},
        "ingress": {"main": "3500m"},
        "namespace": {"default": "7500m"},
    }


def named(name: str) -> dict[str, Any]:
    """Metadata of an object of the namespace default."""
    return {"name": name, "namespace": "default"}


async def test_labels_name_objects(world: ScrapeWorld) -> None:
    """What an Ingress controller says of its Ingresses describes them, wherever its pods are."""
    await world.run_pod(
        "proxy-1", 'requests{ingress="main"} 20\nrequests{ingress="other"} 1\nrequests{ingress="a/b"} 9\n'
    )
    await world.run_pod("proxy-2", 'requests{ingress="main"} 30\n')
    assert world.values("ingresses.networking.k8s.io", "main", "requests") == {"main": "50"}


async def test_stated_values_come_first(world: ScrapeWorld) -> None:
    """Where a ConfigMap states a metric, nothing scraped is added to it."""
    await world.run_pod("web-1", "depth 7\n")
    stated = {"metadata": {**named("load"), "labels": {"podscaler.dev/metrics": "custom"}}}
    await world.registry.create("configmaps", {**stated, "data": {"depth": "{pods: app=web, value: 3}"}})
    await world.rounds(1)
    assert world.values("pods", "*", "depth") == {"web-1": "3"}


async def test_discovery_lists_them(world: ScrapeWorld) -> None:
    """For pods and for what they stand behind; no longer after the pod is gone."""
    before = world.apis.generation
    await world.run_pod("web-1", "depth 7\n")
    kinds = ["deployments.apps", "ingresses.networking.k8s.io", "namespaces", "pods", "services"]
    listed = [(each.subject, each.metric) for each in world.apis.resources("custom.metrics.k8s.io")]
    assert (listed, world.apis.generation > before) == ([(kind, "depth") for kind in kinds], True)
    await world.registry.delete("pods", "default", "web-1", grace_period_s=0)
    await world.rounds(1)
    assert (world.apis.resources("custom.metrics.k8s.io"), world.apis.resources("external.metrics.k8s.io")) == ([], [])


async def test_a_pod_that_fails_has_no_metrics_until_it_answers(world: ScrapeWorld) -> None:
    """One event for each cause, and none for others' failures."""
    await world.run_pod("web-1", "depth 7\n")
    await world.run_pod("web-2", "depth 2\n")
    world.bodies["web-1"] = ScrapeError("GET http://web-1:9090/metrics took longer than 10 s")
    await world.rounds(3)
    assert world.values("pods", "*", "depth") == {"web-2": "2"}
    assert world.events() == [
        ("web-1", "metrics cannot be scraped: GET http://web-1:9090/metrics took longer than 10 s")
    ]
    world.bodies["web-1"] = "depth 9\n"
    await world.rounds(1)
    assert world.values("pods", "*", "depth") == {"web-1": "9", "web-2": "2"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<html>", "it cannot be read: "),
        ("depth one\n", "it cannot be read: "),
    ],
)
async def test_a_body_that_is_no_exposition(world: ScrapeWorld, body: str, text: str) -> None:
    """It is an event on the pod, and nothing is served."""
    await world.run_pod("web-1", body)
    assert [(pod, text in message) for pod, message in world.events()] == [("web-1", True)]
    with pytest.raises(StatusError):
        world.values("pods", "*", "depth")


async def test_a_pod_that_does_not_say_how(world: ScrapeWorld) -> None:
    """The event names the annotation; once it is mended the pod is scraped."""
    await world.run_pod("web-1", "depth 7\n")
    pod = dict(world.registry.get("pods", "default", "web-1"))
    pod["metadata"] = {**pod["metadata"], "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "x"}}
    pod = await world.registry.update("pods", pod)
    await world.rounds(1)
    fault = "metrics cannot be scraped: annotation prometheus.io/port: must be a number from 1 to 65535"
    with pytest.raises(StatusError):
        world.values("pods", "*", "depth")
    pod = {**pod, "metadata": {**pod["metadata"], "annotations": {}}}
    await world.registry.update("pods", pod)
    await world.rounds(1)
    assert (world.events(), world.values("pods", "*", "depth")) == ([("web-1", fault)], {"web-1": "7"})


async def test_a_large_body_is_read_in_a_thread(world: ScrapeWorld) -> None:
    """It is served as a small one."""
    await world.run_pod("web-1", "# a comment\n" * 4000 + "depth 7\n")
    for _ in range(200):
        if world.apis.resources("custom.metrics.k8s.io"):
            break
        await world.clock.advance(0, turns=50)
    assert world.values("pods", "*", "depth") == {"web-1": "7"}


async def test_a_pod_that_goes_while_it_is_asked(world: ScrapeWorld) -> None:
    """Its answer is dropped."""
    await world.run_pod("web-1", "depth 7\n")
    world.slow_s = 5.0
    await world.rounds(1)
    await world.clock.advance(1, turns=100)
    await world.registry.delete("pods", "default", "web-1", grace_period_s=0)
    await world.rounds(2)
    assert world.apis.resources("custom.metrics.k8s.io") == []
