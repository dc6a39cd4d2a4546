"""Server-side apply over HTTP: create, conflicts, rights, texts, versions, status, scale; who writes by which name."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from server_under_test import CONFIG_MAPS, VIEWER_TOKEN, Reply, Running, config_map, running_server

from podscaler.controlplane.apiserver.http import resource_request

Object = dict[str, Any]

AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
AUTOSCALERS_V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
KIND = "autoscaling/v2, Kind=HorizontalPodAutoscaler"
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with nothing in it."""
    async with running_server(tmp_path / "data") as running:
        yield running


def autoscaler(version: str = "v2", **spec: Any) -> Object:
    """An autoscaler for a Deployment."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 10, **spec}
    kind = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "web"}, "spec": spec}


def deployment(**spec: Any) -> Object:
    """A Deployment."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


async def apply(server: Running, path: str, config: Any, query: str = "fieldManager=me", **headers: str) -> Reply:
    """Apply a configuration, as an object or as text."""
    body = {"data": config} if isinstance(config, str) else {"json": config}
    return await server.request("PATCH", f"{path}?{query}", headers=APPLY | headers, **body)


def owners(obj: Object) -> list[str]:
    """The managers of an object: name, operation, version and subresource."""
    parts = ("manager", "operation", "apiVersion", "subresource")
    entries = obj["metadata"].get("managedFields", [])
    return [" ".join(entry[part] for part in parts if part in entry) for entry in entries]


async def test_apply_creates_and_keeps(server: Running) -> None:
    """201 for a new object, 200 afterwards; the same again changes nothing."""
    first = await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="1"))
    again = await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="1"))
    assert (first.status, again.status, again.body) == (201, 200, first.body)
    assert first.body["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:x": {}}},
        }
    ]


async def test_apply_may_be_forced(server: Running) -> None:
    """409 where others own what changes; with force it becomes one's own."""
    await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="1", y="1"))
    refused = await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="2"), "fieldManager=you")
    forced = await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="2"), "fieldManager=you&force=true")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert (forced.status, forced.body["data"], len(owners(forced.body))) == (200, {"x": "2", "y": "1"}, 2)


async def test_dry_runs_store_nothing(server: Running) -> None:
    """The answer is what would be."""
    shown = await apply(server, f"{CONFIG_MAPS}/a", config_map("a", x="1"), "fieldManager=me&dryRun=All")
    assert (shown.status, (await server.get(f"{CONFIG_MAPS}/a")).status) == (201, 404)


async def test_who_may_only_patch_creates_nothing(server: Running) -> None:
    """The right to patch lets a user apply to what is there, not create what is not."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await server.create(f"{rbac}/clusterroles", {"metadata": {"name": "patcher"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}
    binding = {"metadata": {"name": "patcher"}, "roleRef": reference, "subjects": [subject]}
    await server.create(f"{rbac}/clusterrolebindings", binding)
    await server.create(CONFIG_MAPS, config_map("there"))
    viewer = {"Authorization": f"Bearer {VIEWER_TOKEN}"}
    there = await apply(server, f"{CONFIG_MAPS}/there", config_map("there", x="1"), **viewer)
    new = await apply(server, f"{CONFIG_MAPS}/new", config_map("new"), **viewer)
    assert (there.status, new.status) == (200, 403)
    assert 'cannot create resource "configmaps" in API group "" in the namespace "default"' in new.body["message"]


@pytest.mark.parametrize(
    ("config", "query", "code", "message"),
    [
        pytest.param(
            autoscaler(), "", 422, "fieldManager: Required value: is required for apply patch", id="no manager"
        ),
        pytest.param(
            autoscaler("v1"),
            "fieldManager=a",
            400,
            "invalid object type: autoscaling/v1, Kind=HorizontalPodAutoscaler",
            id="another version",
        ),
        pytest.param("", "fieldManager=a", 400, "invalid object type: /, Kind=", id="nothing"),
        pytest.param(
            "- a",
            "fieldManager=a",
            400,
            "while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
        pytest.param(
            "a: b: c",
            "fieldManager=a",
            400,
            "error encoding patch: yaml: mapping values are not allowed in this context",
            id="no YAML",
        ),
        pytest.param(
            '{"a":',
            "fieldManager=a",
            400,
            "error converting YAML to JSON: yaml: line 1: did not find expected node content",
            id="no JSON",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {"name": "other"}},
            "fieldManager=a",
            400,
            "the name of the object (other) does not match the name on the URL (web)",
            id="another name",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {}},
            "fieldManager=a",
            400,
            "the name of the object (web based on URL) was undeterminable: name must be provided",
            id="no name",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {"name": "web", "managedFields": []}},
            "fieldManager=a",
            400,
            "metadata.managedFields must be nil",
            id="managedFields",
        ),
        pytest.param(
            autoscaler(zz=1),
            "fieldManager=a",
            500,
            f"failed to create typed patch object (/web; {KIND}): .spec.zz: field not declared in schema",
            id="unknown field",
        ),
        pytest.param(
            autoscaler(maxReplicas=1.5),
            "fieldManager=a",
            500,
            f"to proper version: unable to convert unstructured object to {KIND}: cannot convert float64 to int32",
            id="a fraction",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {"name": True}},
            "fieldManager=a",
            500,
            f"(/; {KIND}): .metadata.name: expected string, got &value.valueUnstructured{{Value:true}}",
            id="a name that is no text",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {"name": "web", "creationTimestamp": 5}},
            "fieldManager=a",
            500,
            f"unstructured object to {KIND}: json: cannot unmarshal number into Go value of type string",
            id="a time that is no text",
        ),
        pytest.param(
            {**autoscaler(), "metadata": {"name": "web", "uid": "x"}},
            "fieldManager=a",
            409,
            "uid mismatch: the provided object specified uid x, and no existing object was found",
            id="another uid",
        ),
    ],
)
async def test_errors(server: Running, config: Any, query: str, code: int, message: str) -> None:
    """What cannot be applied is an error in upstream's words."""
    reply = await apply(server, f"{AUTOSCALERS}/web", config, query)
    assert (reply.status, reply.body["message"].endswith(message)) == (code, True), reply.body["message"]


@pytest.mark.parametrize(
    ("validation", "status", "warnings"),
    [
        pytest.param("Strict", 400, None, id="strict"),
        pytest.param("Warn", 201, '299 - "line 5: key \\"data\\" already set in map"', id="warn"),
        pytest.param("Ignore", 201, None, id="ignore"),
    ],
)
async def test_repeated_keys(server: Running, validation: str, status: int, warnings: str | None) -> None:
    """A key that repeats is refused, told or passed over."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\ndata: {x: '2'}\n"
    reply = await apply(server, f"{CONFIG_MAPS}/a", text, f"fieldManager=me&fieldValidation={validation}")
    assert (reply.status, reply.headers.get("Warning")) == (status, warnings)


async def test_integers_wrap(server: Running) -> None:
    """A configuration's integer keeps the bits that its field has, also where another version was applied before."""
    found = []
    for wanted in (autoscaler("v1", maxReplicas=9), autoscaler(maxReplicas=2**32 + 3)):
        path = AUTOSCALERS_V1 if wanted["apiVersion"].endswith("v1") else AUTOSCALERS
        reply = await apply(server, f"{path}/web", wanted, "fieldManager=a")
        found.append((reply.status, reply.body["spec"]["maxReplicas"]))
    assert found == [(201, 9), (200, 3)]


_NOT_CONVERTED = f"unable to convert unstructured object to {KIND}: cannot convert float64 to int32"


@pytest.mark.parametrize(
    ("first", "message"),
    [
        pytest.param(
            "a",
            f"failed to prune fields: failed to convert merged object to last applied version: {_NOT_CONVERTED}",
            id="what the same manager applied",
        ),
        pytest.param("b", f"failed to convert new object: {_NOT_CONVERTED}", id="what another one applied"),
    ],
)
async def test_configurations_that_cannot_be_converted(server: Running, first: str, message: str) -> None:
    """Where another version was applied before, the API error says which step of the merge failed."""
    await apply(server, f"{AUTOSCALERS_V1}/web", autoscaler("v1"), f"fieldManager={first}")
    reply = await apply(server, f"{AUTOSCALERS}/web", autoscaler(maxReplicas=1.5), "fieldManager=a&force=true")
    assert (reply.status, reply.body["message"]) == (500, message)


async def test_versions_have_managers_of_their_own(server: Running) -> None:
    """What one applied in v2 is what another would change in v1."""
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    await apply(server, f"{AUTOSCALERS}/web", autoscaler(metrics=[metric]), "fieldManager=a")
    wanted = autoscaler("v1", targetCPUUtilizationPercentage=60)
    refused = await apply(server, f"{AUTOSCALERS_V1}/web", wanted, "fieldManager=b")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "a": .spec.metrics'
    forced = await apply(server, f"{AUTOSCALERS_V1}/web", wanted, "fieldManager=b&force=true")
    assert owners(forced.body) == ["a Apply autoscaling/v2", "b Apply autoscaling/v1"]
    assert forced.body["spec"]["targetCPUUtilizationPercentage"] == 60


async def test_status_is_applied_apart(server: Running) -> None:
    """Through `status` one owns what is in the status; an object that is not there is not created."""
    missing = await apply(server, f"{AUTOSCALERS}/web/status", {**autoscaler(), "status": {"currentReplicas": 1}})
    await apply(server, f"{AUTOSCALERS}/web", autoscaler())
    found = await apply(server, f"{AUTOSCALERS}/web/status", {**autoscaler(), "status": {"currentReplicas": 1}})
    assert (missing.status, found.status) == (404, 200)
    fields = [entry["fieldsV1"] for entry in found.body["metadata"]["managedFields"] if "subresource" in entry]
    assert fields == [{"f:status": {"f:currentReplicas": {}}}]


async def test_scales_are_applied(server: Running) -> None:
    """Who applies a Scale owns the replicas of its object from then on."""
    await apply(server, f"{DEPLOYMENTS}/web", deployment(replicas=2))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    refused = await apply(server, f"{DEPLOYMENTS}/web/scale", scale, "fieldManager=hpa")
    forced = await apply(server, f"{DEPLOYMENTS}/web/scale", scale, "fieldManager=hpa&force=true")
    assert (refused.status, forced.status, forced.body["spec"]) == (409, 200, {"replicas": 5})
    found = (await server.get(f"{DEPLOYMENTS}/web")).body
    assert owners(found) == ["hpa Apply apps/v1 scale", "me Apply apps/v1"]
    back = await apply(server, f"{DEPLOYMENTS}/web", deployment(replicas=2))
    assert back.body["details"]["causes"][0]["message"] == 'conflict with "hpa" with subresource "scale"'


async def test_managers_are_named_by_their_program(server: Running) -> None:
    """Without a fieldManager, the User-Agent up to the slash names the writer."""
    headers = {"User-Agent": "kubectl/v1.37.0 (linux)"}
    reply = await server.request("POST", CONFIG_MAPS, json=config_map("a", x="1"), headers=headers)
    assert owners(reply.body) == ["kubectl Update v1"]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        pytest.param("kubectl/v1", "kubectl", id="up to the slash"),
        pytest.param("a\tb\x01c", "abc", id="what can be printed"),
        pytest.param("x" * 200, "x" * 128, id="not too long"),
        pytest.param("/v1", "", id="nothing"),
    ],
)
def test_names_of_programs(agent: str, name: str) -> None:
    """A program's name is what a manager may be called."""
    assert resource_request.prefix_from_user_agent(agent) == name


async def test_force_is_for_apply(server: Running) -> None:
    """Other patches refuse it."""
    await server.create(CONFIG_MAPS, config_map("a"))
    headers = {"Content-Type": "application/merge-patch+json"}
    reply = await server.request("PATCH", f"{CONFIG_MAPS}/a?force=true", json={}, headers=headers)
    assert reply.body["details"]["causes"][0]["message"] == "Forbidden: may not be specified for non-apply patch"
