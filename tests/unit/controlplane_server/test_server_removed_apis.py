"""HorizontalPodAutoscalers in versions that upstream no longer serves, over HTTP."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.api.kinds import catalog
from podscaler.api.kinds.autoscaling import hpa_removed_versions

VERSIONS = {
    "autoscaling/v2beta2": "is deprecated in v1.23+, unavailable in v1.26+",
    "autoscaling/v2beta1": "is deprecated in v1.22+, unavailable in v1.25+",
    "autoscaling/v2alpha1": "is deprecated in v1.8+, unavailable in v1.9+",
    "extensions/v1beta1": "is deprecated in v1.2+, unavailable in v1.6+",
}
REFERENCE = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
CPU_SPECS: dict[str, dict[str, Any]] = {
    "autoscaling/v2beta2": {
        "scaleTargetRef": REFERENCE,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}},
            }
        ],
    },
    "autoscaling/v2beta1": {
        "scaleTargetRef": REFERENCE,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 40}}],
    },
    "autoscaling/v2alpha1": {
        "scaleTargetRef": REFERENCE,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 40}}],
    },
    "extensions/v1beta1": {
        "scaleRef": {**REFERENCE, "subresource": "scale"},
        "cpuUtilization": {"targetPercentage": 40},
    },
}
EACH = pytest.mark.parametrize("api_version", sorted(VERSIONS))
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with running_server(
        tmp_path, resources=hpa_removed_versions.with_removed_versions(catalog.RESOURCES)
    ) as running:
        yield running


def path_of(api_version: str, name: str = "") -> str:
    path = f"/apis/{api_version}/namespaces/default/horizontalpodautoscalers"
    return f"{path}/{name}" if name else path


def autoscaler(api_version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": CPU_SPECS[api_version] | {"maxReplicas": 7} | spec,
    }


@EACH
async def test_every_answer_warns(server: Running, api_version: str) -> None:
    """A client of a removed version is told so, in upstream's words, whatever it asks."""
    wanted = f'299 - "{api_version} HorizontalPodAutoscaler {VERSIONS[api_version]}; '
    wanted += 'use autoscaling/v2 HorizontalPodAutoscaler"'
    created = await server.request("POST", path_of(api_version), json=autoscaler(api_version))
    read = await server.get(path_of(api_version, "web"))
    missing = await server.get(path_of(api_version, "other"))
    watched = await server.get(path_of(api_version) + "?watch=1&timeoutSeconds=1")
    answers = (created, read, missing, watched)
    assert [(each.status, each.headers.get("Warning")) for each in answers] == [
        (201, wanted),
        (200, wanted),
        (404, wanted),
        (200, wanted),
    ]


@EACH
async def test_an_object_is_the_same_in_every_version(server: Running, api_version: str) -> None:
    """What is created in an old version is an autoscaling/v2 object, and comes back as it was given."""
    created = await server.create(path_of(api_version), autoscaler(api_version))
    stored = (await server.get(path_of("autoscaling/v2", "web"))).body
    assert created["spec"] == CPU_SPECS[api_version] | {"minReplicas": 1, "maxReplicas": 7}
    assert stored["spec"] == {
        "scaleTargetRef": REFERENCE,
        "minReplicas": 1,
        "maxReplicas": 7,
        "metrics": CPU_SPECS["autoscaling/v2beta2"]["metrics"],
    }
    assert stored["metadata"] == created["metadata"]


@EACH
async def test_put_patch_list_table_and_watch(server: Running, api_version: str) -> None:
    """An old version has the verbs and forms of every other."""
    created = await server.create(path_of(api_version), autoscaler(api_version))
    created["spec"]["maxReplicas"] = 8
    put = await server.request("PUT", path_of(api_version, "web"), json=created)
    patched = await server.request(
        "PATCH",
        path_of(api_version, "web"),
        data=json.dumps({"spec": {"minReplicas": 2}}),
        headers={"Content-Type": "application/strategic-merge-patch+json"},
    )
    listed = (await server.get(path_of(api_version))).body
    table = (await server.get(path_of(api_version), headers=TABLE)).body
    watched = (await server.get(path_of(api_version) + "?watch=1&timeoutSeconds=1")).body
    assert [each.body["metadata"]["generation"] for each in (put, patched)] == [2, 3]
    assert (listed["kind"], listed["apiVersion"]) == ("HorizontalPodAutoscalerList", api_version)
    assert {"kind": "HorizontalPodAutoscaler", "apiVersion": api_version, **listed["items"][0]} == patched.body
    assert table["rows"][0]["cells"][:6] == ["web", "Deployment/web", "cpu: <unknown>/40%", "2", 8, 0]
    assert (watched["type"], watched["object"]) == ("ADDED", patched.body)


async def test_status_through_an_old_version(server: Running) -> None:
    """A status written in v2beta1 is read in v2; what v2beta1 always shows is there."""
    created = await server.create(path_of("autoscaling/v2beta1"), autoscaler("autoscaling/v2beta1"))
    assert created["status"] == {
        "currentReplicas": 0,
        "desiredReplicas": 0,
        "currentMetrics": None,
        "conditions": None,
    }
    current = [{"type": "Pods", "pods": {"metricName": "rps", "currentAverageValue": "5"}}]
    created["status"] |= {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": current}
    put = await server.request("PUT", path_of("autoscaling/v2beta1", "web/status"), json=created)
    stored = (await server.get(path_of("autoscaling/v2", "web"))).body
    assert put.body["status"] == created["status"]
    assert stored["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "rps"}, "current": {"averageValue": "5"}}}],
    }


async def test_faults_name_the_fields_of_v2(server: Running) -> None:
    """Validation is of the stored form, as upstream's is of its internal one."""
    wrong = autoscaler("extensions/v1beta1", scaleRef={"name": "web"}, cpuUtilization={"targetPercentage": 0})
    refused = await server.request("POST", path_of("extensions/v1beta1"), json=wrong)
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [
        "spec.scaleTargetRef.kind",
        "spec.scaleTargetRef.apiVersion",
        "spec.metrics[0].resource.target.averageUtilization",
    ]
    assert refused.body["details"]["group"] == "autoscaling"


async def test_a_tolerance_annotation_must_be_a_quantity(server: Running) -> None:
    """v2beta2 keeps tolerances in annotations; one that cannot be read is refused, as upstream refuses it."""
    wrong = autoscaler("autoscaling/v2beta2")
    wrong["metadata"]["annotations"] = {"autoscaling.alpha.kubernetes.io/scale-up-tolerance": "much"}
    refused = await server.request("POST", path_of("autoscaling/v2beta2"), json=wrong)
    assert (refused.status, refused.body["message"].partition(": ")[0]) == (
        400,
        'HorizontalPodAutoscaler in version "v2beta2" cannot be handled as a HorizontalPodAutoscaler',
    )
    assert 'failed to parse annotation "autoscaling.alpha.kubernetes.io/scale-up-tolerance"' in refused.body["message"]


async def test_discovery_lists_old_versions(server: Running) -> None:
    """Clients find the old versions, after the ones that upstream serves."""
    groups = {group["name"]: group for group in (await server.get("/apis")).body["groups"]}
    assert [each["version"] for each in groups["autoscaling"]["versions"]] == [
        "v2",
        "v1",
        "v2beta2",
        "v2beta1",
        "v2alpha1",
    ]
    assert groups["autoscaling"]["preferredVersion"]["version"] == "v2"
    listed = (await server.get("/apis/extensions/v1beta1")).body["resources"]
    assert [each["name"] for each in listed] == ["horizontalpodautoscalers", "horizontalpodautoscalers/status"]
    assert [key for key in ("shortNames", "categories") if key in listed[0]] == []


async def test_openapi_describes_old_versions(server: Running) -> None:
    """Every old version has a document of its own."""
    index = await server.get("/openapi/v3")
    paths = json.loads(index.body)["paths"]
    assert {f"apis/{version}" for version in VERSIONS} <= set(paths)
    document = (await server.get(paths["apis/autoscaling/v2beta1"]["serverRelativeURL"])).body
    assert "io.k8s.api.autoscaling.v2beta1.ExternalMetricSource" in document["components"]["schemas"]


async def test_old_versions_are_not_served_unless_asked_for(tmp_path: Path) -> None:
    """Without the flag an old version is neither found nor known to the decoder."""
    async with running_server(tmp_path) as server:
        missing = await server.get(path_of("autoscaling/v2beta2"))
        unknown = await server.request("POST", path_of("autoscaling/v2"), json=autoscaler("autoscaling/v2beta2"))
        groups = [group["name"] for group in (await server.get("/apis")).body["groups"]]
    assert (missing.status, unknown.status, "extensions" in groups) == (404, 400, False)
    assert (
        'no kind "HorizontalPodAutoscaler" is registered for version "autoscaling/v2beta2"' in unknown.body["message"]
    )


@pytest.mark.parametrize("api_version", ["autoscaling/v2", "autoscaling/v2beta2", "extensions/v1beta1"])
@pytest.mark.parametrize("target_version", ["v1", ""], ids=["v1", "no version"])
async def test_a_replication_controller_is_a_target(server: Running, api_version: str, target_version: str) -> None:
    """The one kind of the core group that may be scaled, named with its version or without."""
    reference = {"kind": "ReplicationController", "name": "rc"}
    if target_version:
        reference["apiVersion"] = target_version
    name = "scaleRef" if api_version == "extensions/v1beta1" else "scaleTargetRef"
    sent = {
        "apiVersion": api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {name: reference, "maxReplicas": 7},
    }
    await server.create(path_of(api_version), sent)
    stored = (await server.get(path_of("autoscaling/v2", "web"))).body
    assert stored["spec"]["scaleTargetRef"] == reference


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        pytest.param("/api/v1/namespaces/default/configmaps", [], id="a kind that upstream prints"),
        pytest.param("/api/v1/namespaces/default/limitranges", None, id="a kind that it does not"),
        pytest.param("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", None, id="roles"),
    ],
)
async def test_tables_without_rows(server: Running, path: str, rows: list[Any] | None) -> None:
    """They have an empty list of rows, or none, as upstream's have."""
    found = await server.get(path, headers=TABLE, params={"labelSelector": "none=such"})
    assert found.body["rows"] == rows


async def test_names_are_quoted_in_refusals(server: Running) -> None:
    """Whatever stands in a name, the sentence around it can be read."""
    reply = await server.request("POST", "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": 'a"\t'}})
    assert reply.body["message"].startswith(r'ConfigMap "a\"\t" is invalid: metadata.name: Invalid value: "a\"\t": ')
