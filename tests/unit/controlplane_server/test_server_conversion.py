"""A conversion webhook converts custom resources for reads, lists, watches and writes in another version."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.controlplane.apiserver.webhooks.conversion_webhooks import ConversionWebhooks
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.testing import webhook_server
from podscaler.testing.webhook_server import WebhookServer, converted, patch_response

Object = dict[str, Any]
V1, V2 = (f"/apis/example.com/{version}/namespaces/default/gears" for version in ("v1", "v2"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"Content-Type": "application/merge-patch+json"}


@dataclass
class Plane:
    """A server with a kind of two versions, and the webhook that converts it."""

    running: Running
    webhook: WebhookServer

    async def make(self, name: str, **metadata: Any) -> Object:
        """Create a gear of size 1 in v1, which is stored, and forget the calls."""
        created = await self.running.create(V1, gear("v1", {"name": name, **metadata}, size="1"))
        self.webhook.reviews.clear()
        return created

    @property
    def calls(self) -> list[tuple[str, list[str]]]:
        """The wanted version of each conversion, and the names of the objects."""
        return [
            (request["desiredAPIVersion"].partition("/")[2], [obj["metadata"]["name"] for obj in request["objects"]])
            for request in self.webhook.requests
            if "desiredAPIVersion" in request
        ]


def gear(version: str, metadata: Object, **spec: Any) -> Object:
    """`size` is a text in v1, `count` a number in v2."""
    return {"apiVersion": f"example.com/{version}", "kind": "Gear", "metadata": metadata, "spec": spec}


def convert_gear(obj: Object, api_version: str) -> None:
    """Convert a gear, in place."""
    spec = obj.get("spec") or {}
    if api_version == "example.com/v2" and "size" in spec:
        spec["count"] = int(spec.pop("size"))
    elif api_version == "example.com/v1" and "count" in spec:
        spec["size"] = str(spec.pop("count"))


def definition(client: Object, *, stored: str = "v1") -> Object:
    """A definition whose versions have no field of spec in common."""
    fields = {"v1": {"size": {"type": "string"}}, "v2": {"count": {"type": "integer", "maximum": 9}}}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == stored,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", **spec}}}},
        }
        for name, spec in ((name, {"properties": properties}) for name, properties in fields.items())
    ]
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return {"metadata": {"name": "gears.example.com"}, "spec": spec}


def configuration(client: Object, rule: Object) -> Object:
    """A configuration of one admission webhook."""
    webhook = {
        "name": "check.example.com",
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": "checks"}, "webhooks": [webhook]}


async def passes(check: Callable[[], bool]) -> None:
    """Let other tasks run until a check passes."""
    for _ in range(10_000):
        if check():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never passes")


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Plane]:
    """A server with the kind."""
    async with webhook_server.serve_webhook(folder) as webhook, running_server(folder / "data") as running:
        webhook.respond = lambda request: converted(request, convert_gear)
        admission = WebhookAdmission(running.objects)
        running.objects.admission = admission
        running.objects.converter = ConversionWebhooks(admission.client)
        try:
            await running.create(DEFINITIONS, definition(webhook.client_config()))
            await passes(lambda: running.objects.knows("gears.example.com"))
            yield Plane(running, webhook)
        finally:
            await admission.client.close()


async def test_a_list_is_converted_in_one_call(tmp_path: Path) -> None:
    """Also objects that differ in their name only."""
    async with serving(tmp_path) as plane:
        for name in ("a", "b", "c"):
            await plane.make(name)
        reply = await plane.running.get(V2)
    assert [item["spec"] for item in reply.body["items"]] == [{"count": 1}] * 3
    assert plane.calls == [("v2", ["a", "b", "c"])]


async def test_the_stored_version_needs_no_call(tmp_path: Path) -> None:
    """For reads and writes."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        await plane.running.get(f"{V1}/a")
        await plane.running.request("PATCH", f"{V1}/a", json={"spec": {"size": "2"}}, headers=MERGE)
    assert plane.calls == []


async def test_a_watch_gets_converted_objects(tmp_path: Path) -> None:
    """The initial ones in one call, changes in one call each."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        await plane.make("b")
        async with plane.running.client.get(f"{plane.running.url}{V2}?watch=true") as stream:
            events = [json.loads(await stream.content.readline()) for _ in range(2)]
            await plane.running.request("PATCH", f"{V1}/a", json={"spec": {"size": "2"}}, headers=MERGE)
            events.append(json.loads(await stream.content.readline()))
    assert [(event["type"], event["object"]["spec"]) for event in events] == [
        ("ADDED", {"count": 1}),
        ("ADDED", {"count": 1}),
        ("MODIFIED", {"count": 2}),
    ]
    assert plane.calls == [("v2", ["a", "b"]), ("v2", ["a"])]


async def test_a_failed_conversion_is_an_error_event(tmp_path: Path) -> None:
    """The watch ends with it."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        plane.webhook.respond = lambda _request: {"result": {"status": "Failure", "message": "no"}}
        async with plane.running.client.get(f"{plane.running.url}{V2}?watch=true") as stream:
            event, rest = json.loads(await stream.content.readline()), await stream.content.read()
    text = "conversion webhook for example.com/v1, Kind=Gear failed: no"
    assert (event["type"], event["object"]["message"], rest) == ("ERROR", text, b"")


@pytest.mark.parametrize(
    ("size", "message"),
    [
        pytest.param("1" + "0" * 400, "cannot unmarshal number", id="a number beyond float64"),
        pytest.param("[" * 300 + "]" * 300, "exceeded max depth", id="a deep list"),
    ],
)
async def test_what_the_api_refuses_is_not_stored_by_a_conversion(tmp_path: Path, size: str, message: str) -> None:
    """Such an object could not be read any more."""
    async with serving(tmp_path) as plane:
        plane.webhook.rewrite = lambda review: json.dumps(review).replace('"SIZE"', size).encode()
        plane.webhook.respond = lambda request: converted(request, lambda obj, _version: obj.update(spec="SIZE"))
        refused = await plane.running.request("POST", V2, json=gear("v2", {"name": "a"}, count=3))
        plane.webhook.rewrite = lambda review: review
        listed = await plane.running.get(V1)
    assert (refused.status, message in refused.body["message"], listed.body["items"]) == (500, True, [])


async def test_a_generated_name_is_that_of_the_conversion(tmp_path: Path) -> None:
    """Although the object is decided again after the call."""
    async with serving(tmp_path) as plane:
        stored = await plane.running.create(V2, gear("v2", {"generateName": "a-"}, count=3))
    name = stored["metadata"]["name"]
    assert (stored["spec"], name[:2]) == ({"count": 3}, "a-")
    assert plane.calls == [("v1", [name]), ("v2", [name])]


async def test_a_write_is_validated_in_its_own_version(tmp_path: Path) -> None:
    """The schema of v1 has no maximum."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        refused = await plane.running.request("PATCH", f"{V2}/a", json={"spec": {"count": 10}}, headers=MERGE)
        accepted = await plane.running.request("PATCH", f"{V1}/a", json={"spec": {"size": "10"}}, headers=MERGE)
    assert refused.body["details"]["causes"][0]["field"] == "spec.count"
    assert (refused.status, accepted.status) == (422, 200)


async def test_an_update_that_changes_nothing_is_not_stored(tmp_path: Path) -> None:
    """It is compared in the stored version."""
    async with serving(tmp_path) as plane:
        before = await plane.make("a")
        after = await plane.running.request("PATCH", f"{V2}/a", json={"spec": {"count": 1}}, headers=MERGE)
    assert after.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_a_write_after_a_change_of_the_storage_version_migrates_the_object(tmp_path: Path) -> None:
    """Even if it changes nothing else."""
    async with serving(tmp_path) as plane:
        before = await plane.make("a")
        changed = definition(plane.webhook.client_config(), stored="v2")
        await plane.running.request("PATCH", f"{DEFINITIONS}/gears.example.com", json=changed, headers=MERGE)
        await passes(lambda: plane.running.objects.resource("gears.example.com").storage_version == "v2")
        after = await plane.running.request("PATCH", f"{V1}/a", json={}, headers=MERGE)
        entry = plane.running.objects.get("gears.example.com", "default", "a")
    assert (after.status, after.body["spec"]) == (200, {"size": "1"})
    assert after.body["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert (entry.decode()["apiVersion"], entry.decode()["spec"]) == ("example.com/v2", {"count": 1})


async def test_a_change_during_a_conversion_is_converted_again(tmp_path: Path) -> None:
    """The patch applies to the newest object."""
    async with serving(tmp_path) as plane:
        await plane.make("a", labels={"old": "1"})

        async def change_once() -> None:
            plane.webhook.delay = None
            labels = {"metadata": {"labels": {"new": "1"}}}
            await plane.running.request("PATCH", f"{V1}/a", json=labels, headers=MERGE)

        plane.webhook.delay = change_once
        reply = await plane.running.request("PATCH", f"{V2}/a", json={"spec": {"count": 5}}, headers=MERGE)
    assert (reply.status, reply.body["spec"]) == (200, {"count": 5})
    assert reply.body["metadata"]["labels"] == {"old": "1", "new": "1"}


async def test_admission_webhooks_get_their_version(tmp_path: Path) -> None:
    """A mutating webhook for v1 changes an object that is written as v2."""
    async with serving(tmp_path) as plane:
        rule = {"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gears"]}
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        await plane.running.create(path, configuration(plane.webhook.client_config(), rule))
        plane.webhook.respond = lambda request: (
            patch_response({"op": "replace", "path": "/spec/size", "value": "7"})
            if "operation" in request
            else converted(request, convert_gear)
        )
        created = await plane.running.create(V2, gear("v2", {"name": "a"}, count=3))
    reviewed = [request["object"] for request in plane.webhook.requests if "operation" in request]
    assert [(obj["apiVersion"], obj["spec"]) for obj in reviewed] == [("example.com/v1", {"size": "3"})]
    assert created["spec"] == {"count": 7}


@pytest.mark.parametrize("path", ["/a", ""], ids=["one object", "a list"])
async def test_a_table_has_the_columns_of_its_version(tmp_path: Path, path: str) -> None:
    """Of converted objects."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        reply = await plane.running.get(V2 + path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert (reply.status, reply.body["rows"][0]["cells"][0]) == (200, "a")
    assert plane.calls == [("v2", ["a"])]


@pytest.mark.parametrize(
    "order",
    [((V1, {"size": "2"}), (V2, {"count": 3})), ((V2, {"count": 3}), (V1, {"size": "2"}))],
    ids=["the former one first", "the new one first"],
)
async def test_objects_are_patched_after_a_change_of_the_storage_version(
    tmp_path: Path, order: Sequence[tuple[str, Object]]
) -> None:
    """In both versions, without a webhook."""
    async with running_server(tmp_path / "data") as running:
        definitions = [definition({}, stored=version) for version in ("v1", "v2")]
        for crd in definitions:
            crd["spec"]["conversion"] = {"strategy": "None"}
        await running.create(DEFINITIONS, definitions[0])
        await passes(lambda: running.objects.knows("gears.example.com"))
        await running.create(V1, gear("v1", {"name": "a"}, size="1"))
        await running.request("PATCH", f"{DEFINITIONS}/gears.example.com", json=definitions[1], headers=MERGE)
        await passes(lambda: running.objects.resource("gears.example.com").storage_version == "v2")
        replies = [
            await running.request("PATCH", f"{path}/a", json={"spec": spec}, headers=MERGE) for path, spec in order
        ]
    assert [reply.status for reply in replies] == [200, 200]


async def test_a_webhook_denies_a_connection(tmp_path: Path) -> None:
    """It gets the options of the connection."""
    async with serving(tmp_path) as plane:
        rule = {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"]}
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await plane.running.create(path, configuration(plane.webhook.client_config(), rule))
        plane.webhook.reviews.clear()
        plane.webhook.respond = lambda _request: {"allowed": False, "status": {"message": "no"}}
        query = "command=ls&command=-l&stdin=true&container=c"
        reply = await plane.running.get(f"/api/v1/namespaces/default/pods/a/exec?{query}")
    (request,) = plane.webhook.requests
    options = {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "container": "c", "command": ["ls", "-l"]}
    assert request["object"] == options
    assert (request["operation"], request["kind"]["kind"]) == ("CONNECT", "PodExecOptions")
    assert (reply.status, reply.body["message"]) == (
        400,
        'admission webhook "check.example.com" denied the request: no',
    )


async def test_the_parameters_of_a_policy_are_converted(tmp_path: Path) -> None:
    """A policy gets them in the version of its `paramKind`."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    policy = {
        "paramKind": {"apiVersion": "example.com/v2", "kind": "Gear"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "params.spec.count == 2", "messageExpression": "string(params.spec.count)"}],
    }
    reference = {"name": "a", "parameterNotFoundAction": "Deny"}
    binding = {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}
    async with serving(tmp_path) as plane:
        await plane.make("a")
        await plane.running.create(f"{policies}ies", {"metadata": {"name": "p"}, "spec": policy})
        await plane.running.create(f"{policies}ybindings", {"metadata": {"name": "b"}, "spec": binding})
        config_map = {"metadata": {"name": "c"}}
        reply = await plane.running.request("POST", "/api/v1/namespaces/default/configmaps", json=config_map)
    assert (reply.status, reply.body["message"].rpartition("denied request: ")[2]) == (422, "1")
    assert plane.calls == [("v2", ["a"])]


async def test_a_failing_webhook_does_not_hold_up_the_stored_version(tmp_path: Path) -> None:
    """A write in it succeeds where a manager wrote another version; managedFields stay as they are, as upstream."""
    async with serving(tmp_path) as plane:
        await plane.make("a")
        await plane.running.request("PATCH", f"{V2}/a", json={"spec": {"count": 2}}, headers=MERGE)
        before = (await plane.running.get(f"{V1}/a")).body
        plane.webhook.status = 500
        patched = await plane.running.request("PATCH", f"{V1}/a", json={"spec": {"size": "3"}}, headers=MERGE)
        other = await plane.running.request("PATCH", f"{V2}/a", json={"spec": {"count": 4}}, headers=MERGE)
    assert (patched.status, patched.body["spec"]) == (200, {"size": "3"})
    assert patched.body["metadata"]["managedFields"] == before["metadata"]["managedFields"]
    assert {entry["apiVersion"] for entry in before["metadata"]["managedFields"]} == {
        "example.com/v1",
        "example.com/v2",
    }
    assert other.status == 500
