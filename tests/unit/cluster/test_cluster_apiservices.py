"""The API server's own list of what it serves."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podscaler.api import group_priorities
from podscaler.api.kinds import catalog
from podscaler.api.kinds.apiextensions import apiservice
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.cluster.apiservices import API_SERVICES, DEFINITIONS, MANAGED, ApiServices
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.controlplane.storage.store import open_store, run_inline
from podscaler.testing import VirtualClock

BUILT_IN = (("", "v1"), ("autoscaling", "v2"), ("apiregistration.k8s.io", "v1"))


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    """An empty registry of all kinds."""
    store = await open_store(tmp_path, VirtualClock(), run=run_inline, is_synced=False)
    yield Registry(Objects(store, [each for each in catalog.RESOURCES if each.stored]))
    await store.close()


async def _sync_all(registry: Registry) -> ApiServices:
    services = ApiServices(registry, BUILT_IN, has_definitions=False)
    for key in sorted(services.prime()):
        await services.sync(key)
    return services


async def test_built_in_groups_are_registered(registry: Registry) -> None:
    """Each group and version but that of the list itself, available at once, with upstream's priorities."""
    await _sync_all(registry)
    found = {each["metadata"]["name"]: each for each in registry.list(API_SERVICES)}
    assert found.keys() == {"v1.", "v2.autoscaling"}
    scaling = found["v2.autoscaling"]
    assert scaling["metadata"]["labels"] == {MANAGED: "onstart"}
    assert (scaling["spec"]["groupPriorityMinimum"], scaling["spec"]["versionPriority"]) == (17_500, 30)
    assert scaling["status"]["conditions"][0]["reason"] == "Local"


async def test_what_is_no_longer_served_goes(registry: Registry) -> None:
    """A registration of an earlier run is removed when nothing serves it; one that a user made is left alone."""
    await registry.create(API_SERVICES, _service("v1.gone.example.com", {MANAGED: "true"}))
    await registry.create(API_SERVICES, _service("v1.own.example.com", {}))
    await _sync_all(registry)
    assert registry.find(API_SERVICES, "", "v1.gone.example.com") is None
    assert registry.find(API_SERVICES, "", "v1.own.example.com") is not None


async def test_what_is_deleted_comes_back_with_the_next_start(registry: Registry) -> None:
    """Built-in ones are made once a start, as upstream does."""
    services = await _sync_all(registry)
    await registry.delete(API_SERVICES, "", "v2.autoscaling")
    await services.sync("v2.autoscaling")
    assert registry.find(API_SERVICES, "", "v2.autoscaling") is None
    await _sync_all(registry)
    assert registry.find(API_SERVICES, "", "v2.autoscaling") is not None


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"version": "v2"}, "must be `spec.version", id="another name"),
        pytest.param({"group": "Own"}, "spec.group: Invalid value", id="a group that is no domain"),
        pytest.param({"version": "1"}, "spec.version: Invalid value", id="a version that is no label"),
        pytest.param({"groupPriorityMinimum": 0}, "must be positive and less than 20000", id="no priority"),
        pytest.param({"versionPriority": 1001}, "must be positive and less than 1000", id="too much priority"),
        pytest.param({"service": {"name": "s"}}, "spec.service.namespace: Required value", id="no namespace"),
        pytest.param({"service": {"namespace": "n"}}, "spec.service.name: Required value", id="no name"),
        pytest.param(
            {"service": {"namespace": "n", "name": "s", "port": 0}},
            "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            id="port 0",
        ),
        pytest.param({"service": {"namespace": "n", "name": "s", "port": 65536}}, "spec.service.port", id="port 65536"),
        pytest.param(
            {"service": {"namespace": "n", "name": "s"}, "caBundle": "MQ==", "insecureSkipTLSVerify": True},
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            id="certificates that are not looked at",
        ),
        pytest.param(
            {"caBundle": "MQ=="},
            'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
            id="certificates",
        ),
        pytest.param({"insecureSkipTLSVerify": True}, "may not have insecureSkipTLSVerify", id="no verification"),
    ],
)
async def test_faults(registry: Registry, spec: dict[str, Any], fault: str) -> None:
    """An APIService is checked as upstream does."""
    service = _service("v1.own.example.com", {})
    with pytest.raises(StatusError, match=fault) as refused:
        await registry.create(API_SERVICES, {**service, "spec": {**service["spec"], **spec}})
    assert refused.value.code == 422


def test_the_table() -> None:
    """kubectl shows who serves, and whether it can be reached, with the reason where not."""
    service = _service("v1.own.example.com", {})
    condition = {"type": "Available", "status": "False", "reason": "Why"}
    assert apiservice.RESOURCE.printer.row({**service, "status": {"conditions": [condition]}}, 0)[1:3] == [
        "Local",
        "False (Why)",
    ]
    assert apiservice.RESOURCE.printer.row(service, 0)[2] == "Unknown"


def test_own_groups_come_before_custom_ones_and_those_before_metrics() -> None:
    """The order in which clients look for a plural that several groups have."""
    order = ("apiregistration.k8s.io", "apps", "autoscaling", "coordination.k8s.io", "example.com", "metrics.k8s.io")
    priorities = [group_priorities.of_version(group, "v1").group for group in order]
    assert priorities == sorted(priorities, reverse=True)


async def test_a_version_that_a_definition_loses_is_unregistered(registry: Registry) -> None:
    """The event has only the remaining versions; the APIService of the other one is synced too."""
    services = ApiServices(registry, (), has_definitions=True)
    watch = next(watched for watched in services.watches() if watched.resource == DEFINITIONS)
    definition = {
        "spec": {"group": "example.com", "versions": [{"name": name, "served": True} for name in ("v1", "v2")]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }
    await registry.create(API_SERVICES, _service("v1.own.example.com", {}))
    for version in ("v1", "v2"):
        await registry.create(API_SERVICES, _service(f"{version}.example.com", {MANAGED: "true"}))
    del definition["spec"]["versions"][0]
    keys = set(watch.get_keys(ObjectEvent("MODIFIED", definition)))
    assert keys == {"v1.example.com", "v2.example.com"}
    await services.sync("v1.example.com")
    assert registry.find(API_SERVICES, "", "v1.example.com") is None


def _service(name: str, labels: dict[str, str]) -> dict[str, Any]:
    version, _, group = name.partition(".")
    spec = {"group": group, "version": version, "groupPriorityMinimum": 5, "versionPriority": 5}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


METRICS = (("metrics.k8s.io", "v1beta1"),)


async def test_an_adapter_in_the_place_of_our_metrics(registry: Registry) -> None:
    """It stays, through restarts too, although it took over the label of the one that was made here."""
    for _ in range(2):
        services = ApiServices(registry, METRICS, has_definitions=False)
        await services.sync("v1beta1.metrics.k8s.io")
        reference = {"namespace": "kube-system", "name": "metrics-server"}

        def name_service(service: dict[str, Any], reference: dict[str, str] = reference) -> None:
            service["spec"]["service"] = dict(reference)

        await registry.mutate(API_SERVICES, "", "v1beta1.metrics.k8s.io", name_service)
    found = registry.get(API_SERVICES, "", "v1beta1.metrics.k8s.io")
    assert found["spec"]["service"] == {**reference, "port": 443}


async def test_ours_comes_back_when_an_adapter_goes(registry: Registry) -> None:
    """Metrics that are measured here are served again, and say so."""
    services = ApiServices(registry, METRICS, has_definitions=False)
    await services.sync("v1beta1.metrics.k8s.io")
    gone = registry.get(API_SERVICES, "", "v1beta1.metrics.k8s.io")
    await registry.delete(API_SERVICES, "", "v1beta1.metrics.k8s.io")
    keys = [key for each in services.watches() for key in each.get_keys(ObjectEvent("DELETED", gone))]
    for key in keys:
        await services.sync(key)
    assert registry.get(API_SERVICES, "", "v1beta1.metrics.k8s.io")["spec"] == gone["spec"]


async def test_one_with_a_service_is_nobody_else_s(registry: Registry) -> None:
    """What a label says does not count against a Service."""
    service = _service("v1beta1.custom.metrics.k8s.io", {MANAGED: "onstart"})
    service["spec"]["service"] = {"namespace": "n", "name": "s"}
    await registry.create(API_SERVICES, service)
    await _sync_all(registry)
    assert registry.find(API_SERVICES, "", "v1beta1.custom.metrics.k8s.io") is not None


def test_the_table_of_a_service() -> None:
    """kubectl shows which Service serves."""
    service = _service("v1.own.example.com", {})
    service["spec"]["service"] = {"namespace": "n", "name": "s", "port": 443}
    assert apiservice.RESOURCE.printer.row(service, 0)[1:3] == ["n/s", "Unknown"]
