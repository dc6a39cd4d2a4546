"""The list of metrics: shared queries, failures of single ones, changes of the API server, and the log."""

import asyncio

import pytest
from adapter_world import POD, RULES, AdapterWorld

from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.adapter.providers.protocols import ExternalValue
from podscaler.api.machinery.selectors import Selector
from podscaler.testing.transport import json_answer

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


async def names(world: AdapterWorld, path: str) -> list[str]:
    """The metrics in discovery."""
    return [each["name"] for each in (await world.get(path))["resources"]]


async def test_metrics_are_listed() -> None:
    """A metric is listed for each resource that a label of its series names."""
    world = await AdapterWorld().started()
    assert await names(world, CUSTOM) == ["namespaces/hits", "pods/hits"]
    assert await names(world, EXTERNAL) == ["queue"]


async def test_nothing_is_known_before() -> None:
    """Before the first list there are no metrics, and the adapter is not ready."""
    world = AdapterWorld()
    assert await names(world, CUSTOM) == []
    assert not world.adapter.relisting.has_listed


class _Sources:
    """A source of external metrics that needs no Prometheus."""

    def names(self) -> list[str]:
        """No metric."""
        return []

    async def find_values(self, namespace: str, name: str, selector: Selector) -> list[ExternalValue] | None:
        """None: unknown."""
        return None


NOT_LISTED = ["the metrics of Prometheus have not been listed yet"]


@pytest.mark.parametrize(
    ("external", "reasons"),
    [
        pytest.param([], [NOT_LISTED, NOT_LISTED, []], id="rules alone"),
        pytest.param([_Sources()], [NOT_LISTED, [], []], id="and other metrics"),
    ],
)
async def test_readiness_while_prometheus_is_down(external: list[_Sources], reasons: list[list[str]]) -> None:
    """Before the first list, after one that failed, and after one that succeeded: other metrics do not wait for it."""
    world = AdapterWorld(external=external)
    found = [world.adapter.server.unready()]
    for failure in (PrometheusError("down", "connection refused"), None):
        world.database.failure = failure
        await world.started()
        found.append(world.adapter.server.unready())
    assert found == reasons


async def test_metrics_come_and_go() -> None:
    """The next list has new series, and lacks those without samples."""
    world = await AdapterWorld().started()
    world.database.now_s += 601
    world.database.add("hits", 1.0, namespace="default", service="web")
    await world.started()
    assert await names(world, CUSTOM) == ["namespaces/hits"]


async def test_a_failed_list_keeps_what_is_known(caplog: pytest.LogCaptureFixture) -> None:
    """While Prometheus is down metrics stay as they were, and the error is logged once."""
    world = await AdapterWorld().started()
    world.database.failure = PrometheusError("down", "connection refused")
    for _ in range(3):
        await world.started()
    assert await names(world, CUSTOM) == ["namespaces/hits", "pods/hits"]
    logged = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert logged == [
        'the series of hits{namespace!=""} cannot be listed: down: connection refused',
        'the series of queue{name!=""} cannot be listed: down: connection refused',
    ]


async def test_one_rejected_query_harms_no_other() -> None:
    """A rule whose series cannot be selected is reported; the adapter is ready with the others."""
    world = await AdapterWorld(RULES.replace("queue{name", "queue{{name")).started()
    assert await names(world, CUSTOM) == ["namespaces/hits", "pods/hits"]
    assert await names(world, EXTERNAL) == []
    assert world.adapter.relisting.has_listed
    assert len(world.adapter.relisting.errors) == 1


async def test_a_resource_may_be_served_later() -> None:
    """A rule about a resource that is not served yet is used once it is."""
    world = AdapterWorld(RULES.replace('template: "<<.Resource>>"', "overrides: {pod: {resource: pod}}"))
    world.kubernetes.on("GET", "/api/v1", json_answer({"resources": []}))
    await world.started()
    assert await names(world, CUSTOM) == []
    world.kubernetes.on("GET", "/api/v1", json_answer({"resources": [POD]}))
    await world.started()
    assert await names(world, CUSTOM) == ["pods/hits"]
    assert world.adapter.relisting.errors == []


async def test_lists_are_periodic() -> None:
    """A list is made at the start and after each period."""
    world = AdapterWorld()
    running = asyncio.ensure_future(world.adapter.run())
    for period_s in (0.0, 600.0, 600.0):
        await world.clock.advance(period_s)
        for _ in range(50):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert world.kubernetes.asked().count("/apis") == 3


async def test_rules_of_one_query_share_the_list() -> None:
    """Two rules with the same seriesQuery cost one request to Prometheus."""
    rule = RULES.split("externalRules")[0]
    world = AdapterWorld(f"{rule}{rule.split('rules:')[1]}")
    asked: list[str] = []
    series = world.database.series

    async def counted(selector: str, *, max_age_s: float) -> list[dict[str, str]]:
        asked.append(selector)
        return list(await series(selector, max_age_s=max_age_s))

    world.database.series = counted  # type: ignore[method-assign]  # counts the requests
    await world.started()
    assert asked == ['hits{namespace!=""}']
