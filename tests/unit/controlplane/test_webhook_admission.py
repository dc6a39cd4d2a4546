"""Admission webhooks are called for writes, may change objects, and reject them in upstream's words."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import registry as registries
from podscaler.testing import webhook_server
from podscaler.testing.webhook_server import WebhookServer, patch_response, serve_webhook

Object = dict[str, Any]
MUTATING, VALIDATING = (
    f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("mutating", "validating")
)
CONFIG_MAP = {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}}
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


@asynccontextmanager
async def plane(tmp_path: Path) -> AsyncIterator[tuple[Registry, WebhookServer]]:
    """A registry whose writes call webhooks, and a webhook."""
    clock = SystemClock()
    async with (
        registries.open_registry(tmp_path / "data", catalog.RESOURCES, clock) as opened,
        serve_webhook(tmp_path) as server,
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
