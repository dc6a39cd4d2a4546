"""Admission webhooks are called for writes, may change objects, and reject them in upstream's words."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.webhooks import webhook_client
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.controlplane.apiserver.webhooks.webhook_client import CallError, WebhookClient
from podscaler.controlplane.registry import acting_user, remote_admission, users
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.remote_admission import WriteContext
from podscaler.testing import registry as registries
from podscaler.testing import webhook_server
from podscaler.testing.webhook_server import Rewrite, WebhookServer, patch_response, serve_webhook

Object = dict[str, Any]
MUTATING, VALIDATING = (
    f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("mutating", "validating")
)
CONFIG_MAP = {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}}
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


@asynccontextmanager
async def plane(tmp_path: Path, *names: str) -> AsyncIterator[tuple[Registry, WebhookServer]]:
    """A registry whose writes call webhooks, and a webhook with a certificate for 127.0.0.1 and `names`."""
    clock = SystemClock()
    async with (
        registries.open_registry(tmp_path / "data", catalog.RESOURCES, clock) as opened,
        serve_webhook(tmp_path, *names) as server,
    ):
        admission = WebhookAdmission(opened.objects)
        opened.objects.admission = admission
        try:
            yield opened.registry, server
        finally:
            await admission.client.close()


def configuration(server: WebhookServer, **fields: Any) -> Object:
    """A configuration of one webhook."""
    webhook = {
        "name": "check.example.com",
        "clientConfig": server.client_config(),
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {"metadata": {"name": "checks"}, "webhooks": [webhook]}


async def test_a_validating_webhook_gets_the_object_as_it_will_be_stored(tmp_path: Path) -> None:
    """With its uid."""
    async with plane(tmp_path) as (registry, server):
        await registry.create(VALIDATING, configuration(server))
        stored = await registry.create("configmaps", CONFIG_MAP)
    (request,) = server.requests
    assert request["operation"] == "CREATE"
    assert request["userInfo"]["username"] == "system:apiserver"
    assert request["object"]["apiVersion"] == "v1"
    assert request["object"]["data"] == {"x": "1"}
    assert request["object"]["metadata"]["uid"] == stored["metadata"]["uid"]


async def test_a_rejection_is_worded_as_upstreams(tmp_path: Path) -> None:
    """Code, reason and message of the webhook; nothing is stored."""
    status = {"code": 403, "reason": "Forbidden", "message": "no maps"}
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: {"allowed": False, "status": status}
        await registry.create(VALIDATING, configuration(server))
        with pytest.raises(StatusError) as caught:
            await registry.create("configmaps", CONFIG_MAP)
        assert registry.find("configmaps", "default", "a") is None
    error = caught.value
    expected = 'admission webhook "check.example.com" denied the request: no maps'
    assert (error.code, error.reason, error.message) == (403, "Forbidden", expected)


async def test_a_mutating_webhook_changes_what_is_stored(tmp_path: Path) -> None:
    """By a JSON patch; on creates and on updates."""
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: patch_response({"op": "add", "path": "/data/y", "value": "2"})
        await registry.create(MUTATING, configuration(server))
        assert (await registry.create("configmaps", CONFIG_MAP))["data"] == {"x": "1", "y": "2"}
        updated = await registry.update("configmaps", {**CONFIG_MAP, "data": {"z": "3"}})
        assert updated["data"] == {"y": "2", "z": "3"}
    assert [request["operation"] for request in server.requests] == ["CREATE", "UPDATE"]


async def test_a_delete_is_reviewed_with_the_stored_object(tmp_path: Path) -> None:
    """`object` is null."""
    async with plane(tmp_path) as (registry, server):
        await registry.create("configmaps", CONFIG_MAP)
        await registry.create(VALIDATING, configuration(server))
        await registry.delete("configmaps", "default", "a")
    (request,) = server.requests
    assert (request["operation"], request["object"], request["oldObject"]["data"]) == ("DELETE", None, {"x": "1"})


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, id="other labels"),
        pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, id="other namespaces"),
        pytest.param({"rules": [{**RULE, "resources": ["configmaps/status"]}]}, id="a subresource"),
        pytest.param({"rules": [{**RULE, "scope": "Cluster"}]}, id="another scope"),
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "object.data.x == '2'"}]}, id="a false match condition"
        ),
    ],
)
async def test_a_webhook_is_not_called_for_other_writes(tmp_path: Path, fields: Object) -> None:
    """Rules, selectors and match conditions limit it."""
    async with plane(tmp_path) as (registry, server):
        await registry.create(VALIDATING, configuration(server, **fields))
        await registry.create("configmaps", CONFIG_MAP)
    assert server.requests == []


async def test_an_equivalent_version_is_converted(tmp_path: Path) -> None:
    """A rule for autoscaling/v1 gets autoscalers, which are written as v2, in v1."""
    rule = {**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 3}
    async with plane(tmp_path) as (registry, server):
        await registry.create(VALIDATING, configuration(server, rules=[rule]))
        await registry.create(
            "horizontalpodautoscalers.autoscaling", {"metadata": CONFIG_MAP["metadata"], "spec": spec}
        )
    (request,) = server.requests
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")


@pytest.mark.parametrize(("policy", "is_stored"), [("Fail", False), ("Ignore", True)])
async def test_the_failure_policy_decides_about_failed_calls(tmp_path: Path, policy: str, is_stored: bool) -> None:
    """A certificate that the bundle does not trust."""
    async with plane(tmp_path) as (registry, server):
        client = {"url": server.client_config()["url"]}
        await registry.create(VALIDATING, configuration(server, clientConfig=client, failurePolicy=policy))
        if not is_stored:
            with pytest.raises(StatusError, match=r"failed calling webhook .*: failed to call webhook"):
                await registry.create("configmaps", CONFIG_MAP)
        else:
            await registry.create("configmaps", CONFIG_MAP)
        assert (registry.find("configmaps", "default", "a") is not None) == is_stored


async def test_this_api_server_is_never_called(tmp_path: Path) -> None:
    """It could wait for itself."""
    async with plane(tmp_path) as (registry, server):
        admission = registry._objects.admission  # the fixture's own part
        assert isinstance(admission, WebhookAdmission)
        admission.client.own_addresses.add((webhook_server.HOST, server.port))
        await registry.create(VALIDATING, configuration(server))
        with pytest.raises(StatusError, match="the webhook is this API server"):
            await registry.create("configmaps", CONFIG_MAP)
    assert server.requests == []


async def test_connections_in_use_are_not_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of pools a call that waits for its response keeps its own."""
    monkeypatch.setattr(webhook_client, "POOLS_MAX", 1)
    async with plane(tmp_path, "localhost") as (registry, server):
        client, is_called, goes_on = WebhookClient(registry), asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            is_called.set()
            await goes_on.wait()

        review = msgspec.json.encode({"request": {"uid": "1"}})
        urls = [f"https://{host}:{server.port}/" for host in ("127.0.0.1", "localhost")]
        server.delay = wait
        first = asyncio.ensure_future(client.post({"url": urls[0]}, server.authority, review, 60))
        await is_called.wait()
        server.delay = None
        second = await client.post({"url": urls[1]}, server.authority, review, 60)
        goes_on.set()
        answers = [msgspec.json.decode(body)["response"]["uid"] for body in (await first, second)]
        await client.close()
    assert answers == ["1", "1"]


async def test_a_webhook_is_called_again_after_a_later_one_changed_the_object(tmp_path: Path) -> None:
    """Once, with the policy IfNeeded; it sees the change."""
    async with plane(tmp_path) as (registry, server):
        seen = []

        def respond(request: Object) -> Object:
            seen.append(sorted(request["object"]["data"]))
            return patch_response({"op": "add", "path": f"/data/y{len(seen)}", "value": "1"})

        server.respond = respond
        first = configuration(server, reinvocationPolicy="IfNeeded")
        second = configuration(server, name="second.example.com")
        first["webhooks"] += second["webhooks"]
        await registry.create(MUTATING, first)
        stored = await registry.create("configmaps", CONFIG_MAP)
    assert seen == [["x"], ["x", "y1"], ["x", "y1", "y2"]]
    assert sorted(stored["data"]) == ["x", "y1", "y2", "y3"]


async def test_a_webhook_is_not_called_again_if_nothing_changed(tmp_path: Path) -> None:
    """By a later one."""
    async with plane(tmp_path) as (registry, server):
        config = configuration(server, reinvocationPolicy="IfNeeded")
        config["webhooks"] += configuration(server, name="second.example.com")["webhooks"]
        await registry.create(MUTATING, config)
        await registry.create("configmaps", CONFIG_MAP)
    assert len(server.requests) == 2


async def test_reviews_have_the_first_known_version(tmp_path: Path) -> None:
    """v1beta1 neither needs the uid nor the type of a patch."""
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: {**patch_response({"op": "remove", "path": "/data/x"}), "uid": "other"}
        server.rewrite = lambda review: {"response": {**review["response"], "patchType": None}}
        versions = {"admissionReviewVersions": ["v9", "v1beta1", "v1"]}
        await registry.create(MUTATING, configuration(server, **versions))
        stored = await registry.create("configmaps", CONFIG_MAP)
    assert [review["apiVersion"] for review in server.reviews] == ["admission.k8s.io/v1beta1"]
    assert not stored.get("data")


async def test_a_rejection_counts_although_its_patch_is_no_patch(tmp_path: Path) -> None:
    """The client sees the webhook's reason, not a fault of the patch."""
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: {
            "allowed": False,
            "status": {"message": "not today"},
            "patch": base64.b64encode(b"{}").decode(),
            "patchType": "JSONPatch",
        }
        await registry.create(MUTATING, configuration(server))
        with pytest.raises(StatusError, match="not today"):
            await registry.create("configmaps", CONFIG_MAP)


@pytest.mark.parametrize("warnings", [pytest.param(5, id="a number"), pytest.param("abc", id="a text")])
async def test_warnings_of_another_type_are_a_failed_call(tmp_path: Path, warnings: object) -> None:
    """They are not taken apart into characters."""
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: {"allowed": True, "warnings": warnings}
        await registry.create(VALIDATING, configuration(server))
        with pytest.raises(StatusError, match=r"failed to call webhook: invalid response\.warnings"):
            await registry.create("configmaps", CONFIG_MAP)


DEEP = b"[" * 50_000


@pytest.mark.parametrize(
    ("rewrite", "message"),
    [
        pytest.param(lambda _review: DEEP, "exceeded max depth", id="a deep list"),
        pytest.param(lambda _review: b'{"a":' * 50_000, "exceeded max depth", id="deep objects"),
        pytest.param(
            lambda review: {**review, "apiVersion": ["x"]},
            "json: cannot unmarshal array into Go struct field .apiVersion of type string",
            id="a list as apiVersion",
        ),
        pytest.param(
            lambda review: {
                **review,
                "response": {**review["response"], "allowed": False, "status": {"details": {"name": 5}}},
            },
            "json: cannot unmarshal number",
            id="a number as name in the details",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_responses_that_are_no_reviews_are_failed_calls(
    tmp_path: Path, rewrite: Rewrite, message: str, policy: str
) -> None:
    """The failure policy decides; the API server does not fail."""
    async with plane(tmp_path) as (registry, server):
        server.rewrite = rewrite
        await registry.create(MUTATING, configuration(server, failurePolicy=policy))
        if policy == "Ignore":
            assert (await registry.create("configmaps", CONFIG_MAP))["data"] == {"x": "1"}
            return
        with pytest.raises(StatusError, match="failed to call webhook: ") as caught:
            await registry.create("configmaps", CONFIG_MAP)
    assert message in str(caught.value)


async def test_a_patch_that_is_too_deep_is_no_patch(tmp_path: Path) -> None:
    """It is a failed call."""
    async with plane(tmp_path) as (registry, server):
        patch = base64.b64encode(b'[{"op":"add","path":"/data","value":' + DEEP).decode()
        server.respond = lambda _request: {"allowed": True, "patch": patch, "patchType": "JSONPatch"}
        await registry.create(MUTATING, configuration(server))
        with pytest.raises(StatusError, match="received undecodable patch in webhook response: exceeded max depth"):
            await registry.create("configmaps", CONFIG_MAP)


@pytest.mark.parametrize("host", ["127.1", "LOCALHOST", "localhost.", "127.0.0.1"])
async def test_no_spelling_of_its_own_address_is_called(tmp_path: Path, host: str) -> None:
    """A call would wait for itself."""
    async with plane(tmp_path) as (registry, server):
        client = WebhookClient(registry)
        client.own_addresses.add(("127.0.0.1", server.port))
        config = {**server.client_config(), "url": f"https://{host}:{server.port}/review"}
        with pytest.raises(CallError, match="the webhook is this API server"):
            await client.post(config, server.authority, b"{}", 5)
        await client.close()


async def test_warnings_are_collected_once(tmp_path: Path) -> None:
    """Of all webhooks of a request, also of those that allow it."""
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: {"allowed": True, "warnings": ["first", "second", "first"]}
        config = configuration(server)
        config["webhooks"] += configuration(server, name="second.example.com")["webhooks"]
        await registry.create(VALIDATING, config)
        context = WriteContext("v1")
        remote_admission.set_context(context)
        await registry.create("configmaps", CONFIG_MAP)
        remote_admission.set_context(WriteContext())
    assert context.warnings == ["first", "second"]


@pytest.mark.parametrize("effects", ["None", "NoneOnDryRun"])
async def test_a_dry_run_is_reviewed_as_such(tmp_path: Path, effects: str) -> None:
    """And nothing is stored."""
    async with plane(tmp_path) as (registry, server):
        await registry.create(VALIDATING, configuration(server, sideEffects=effects))
        with acting_user.as_user(users.SYSTEM):
            await registry._objects.create("configmaps", dict(CONFIG_MAP), dry_run=True)
        assert registry.find("configmaps", "default", "a") is None
    (request,) = server.requests
    assert (request["dryRun"], request["options"]["dryRun"]) == (True, ["All"])


async def test_a_webhook_is_reached_at_an_endpoint_of_its_service(tmp_path: Path) -> None:
    """Its certificate is for the name of the Service."""
    async with plane(tmp_path, "hooks.default.svc") as (registry, server):
        port = {"name": "https", "port": 443, "targetPort": server.port, "protocol": "TCP"}
        await registry.create(
            "services", {"metadata": {"name": "hooks", "namespace": "default"}, "spec": {"ports": [port]}}
        )
        metadata = {"name": "hooks-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "hooks"}}
        endpoints = [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
        ports = [{"name": "https", "port": server.port, "protocol": "TCP"}]
        slice_of_hooks = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
        await registry.create("endpointslices.discovery.k8s.io", slice_of_hooks)
        service = {"service": {"name": "hooks", "namespace": "default", "path": "/review", "port": 443}}
        client = {**service, "caBundle": server.client_config()["caBundle"]}
        await registry.create(VALIDATING, configuration(server, clientConfig=client))
        await registry.create("configmaps", CONFIG_MAP)
    assert len(server.requests) == 1


async def test_a_service_that_is_missing_is_a_failed_call(tmp_path: Path) -> None:
    """With the URL of the Service in the message."""
    async with plane(tmp_path) as (registry, server):
        client = {"service": {"name": "hooks", "namespace": "default"}}
        await registry.create(VALIDATING, configuration(server, clientConfig=client))
        url = "https://hooks.default.svc:443/?timeout=10s"
        with pytest.raises(StatusError) as caught:
            await registry.create("configmaps", CONFIG_MAP)
    text = f'failed to call webhook: Post "{url}": service "hooks" not found'
    assert caught.value.message == f'Internal error occurred: failed calling webhook "check.example.com": {text}'


DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "none"}]},
        },
    },
}


async def test_a_scale_is_reviewed_as_a_scale(tmp_path: Path) -> None:
    """The patch of a mutating webhook applies to the Scale."""
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    async with plane(tmp_path) as (registry, server):
        server.respond = lambda _request: patch_response({"op": "replace", "path": "/spec/replicas", "value": 5})
        await registry.create(MUTATING, configuration(server, rules=[rule]))
        await registry.create("deployments.apps", DEPLOYMENT)
        with acting_user.as_user(users.SYSTEM):
            scale = await registry._objects.update_scale(
                "deployments.apps", "default", "web", lambda scale: {**scale, "spec": {"replicas": 3}}
            )
    (request,) = server.requests
    assert (request["kind"]["kind"], request["subResource"], request["requestSubResource"]) == (
        "Scale",
        "scale",
        "scale",
    )
    assert [request[name]["spec"] for name in ("oldObject", "object")] == [{"replicas": 1}, {"replicas": 3}]
    assert scale["spec"] == {"replicas": 5}


async def test_a_status_is_reviewed_with_the_whole_object(tmp_path: Path) -> None:
    """Rules for the object itself do not match."""
    rules = [{**RULE, "apiGroups": ["apps"], "resources": [name]} for name in ("deployments", "deployments/status")]
    async with plane(tmp_path) as (registry, server):
        await registry.create("deployments.apps", DEPLOYMENT)
        await registry.create(VALIDATING, configuration(server, rules=[rules[1]]))
        await registry.update("deployments.apps", {**DEPLOYMENT, "status": {"replicas": 1}}, subresource="status")
        await registry.update(
            "deployments.apps", {**DEPLOYMENT, "metadata": DEPLOYMENT["metadata"] | {"labels": {"a": "b"}}}
        )
    (request,) = server.requests
    assert (request["subResource"], request["object"]["status"]) == ("status", {"replicas": 1})
    assert request["object"]["spec"]["replicas"] == 1


async def test_an_address_of_ipv6_is_called(tmp_path: Path) -> None:
    """It stands in brackets in the URL and in the header Host; nothing listens there."""
    async with plane(tmp_path) as (registry, _):
        client = WebhookClient(registry)
        with pytest.raises(CallError, match=r'Post "https://\[::1\]:1/x\?timeout=9s": dial tcp \[::1\]:1: connect: '):
            await client.post({"url": "https://[::1]:1/x"}, b"", b"{}", 9)
        await client.close()
