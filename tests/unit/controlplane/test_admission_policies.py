"""ValidatingAdmissionPolicies deny writes, or warn of them, in upstream's words."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.controlplane.registry import remote_admission
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.remote_admission import WriteContext
from podscaler.testing import registry as registries

Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
RULE = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
SMALL = "!has(object.data) || size(object.data) <= 1"
DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


@asynccontextmanager
async def plane(tmp_path: Path) -> AsyncIterator[Registry]:
    """A registry whose writes are admitted by policies."""
    async with registries.open_registry(tmp_path / "data", catalog.RESOURCES, SystemClock()) as opened:
        admission = WebhookAdmission(opened.objects)
        opened.objects.admission = admission
        try:
            yield opened.registry
        finally:
            await admission.client.close()


def policy(**fields: Any) -> Object:
    """A policy: at most one entry in ConfigMaps."""
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": SMALL}], **fields}
    return {"metadata": {"name": "p"}, "spec": spec}


def binding(**fields: Any) -> Object:
    """The binding of it."""
    spec = {"policyName": "p", "validationActions": ["Deny"], **fields}
    return {"metadata": {"name": "b"}, "spec": spec}


def config_map(name: str = "a", **fields: Any) -> Object:
    """A ConfigMap with two entries."""
    return {"metadata": {"name": name, "namespace": "default", **fields}, "data": {"x": "1", "y": "2"}}


async def outcome(registry: Registry, bound: Object, *bindings: Object, obj: Object | None = None) -> str:
    """Why a write is denied under these policies; empty: it is stored."""
    await registry.create(POLICIES, bound)
    for each in bindings:
        await registry.create(BINDINGS, each)
    try:
        await registry.create("configmaps", obj or config_map())
    except StatusError as error:
        return f"{error.code} {error.reason} {error.message.partition(' is forbidden: ')[2]}"
    return ""


async def test_a_denied_write(tmp_path: Path) -> None:
    """Code, reason, message and cause are upstream's; nothing is stored."""
    async with plane(tmp_path) as registry:
        await registry.create(POLICIES, policy())
        await registry.create(BINDINGS, binding())
        with pytest.raises(StatusError) as caught:
            await registry.create("configmaps", config_map())
        assert registry.find("configmaps", "default", "a") is None
        await registry.create("configmaps", {**config_map(), "data": {"x": "1"}})
    error, text = caught.value, f"{DENIED}failed expression: {SMALL}"
    assert (error.code, error.reason, error.message) == (422, "Invalid", f'configmaps "a" is forbidden: {text}')
    assert [each.message for each in error.causes] == [text]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"validations": [{"expression": SMALL, "message": " too big "}]}, "too big", id="message"),
        pytest.param(
            {"validations": [{"expression": SMALL, "messageExpression": "'has ' + string(size(object.data))"}]},
            "has 2",
            id="message expression",
        ),
        pytest.param(
            {"validations": [{"expression": SMALL, "message": "given", "messageExpression": "object.no"}]},
            "given",
            id="message expression that fails",
        ),
        pytest.param(
            {
                "variables": [
                    {"name": "count", "expression": "size(object.data)"},
                    {"name": "twice", "expression": "variables.count * 2"},
                ],
                "validations": [{"expression": "variables.twice < 4", "message": "four"}],
            },
            "four",
            id="variables",
        ),
        pytest.param(
            {"validations": [{"expression": "object.no == 1"}]},
            "expression 'object.no == 1' resulted in error: no such key: no",
            id="an expression that fails",
        ),
        pytest.param(
            {"validations": [{"expression": "request.operation != 'CREATE'", "message": "creates"}]},
            "creates",
            id="request",
        ),
        pytest.param(
            {"validations": [{"expression": "namespaceObject.metadata.name != 'default'", "message": "default"}]},
            "default",
            id="namespace",
        ),
    ],
)
async def test_messages(tmp_path: Path, fields: Object, expected: str) -> None:
    """The computed message, else the given one, else the expression."""
    async with plane(tmp_path) as registry:
        assert await outcome(registry, policy(**fields), binding()) == f"422 Invalid {DENIED}{expected}"


COSTLY = "object.data.all(k, object.data.all(l, object.data.all(m, object.data[k] != 'q' || l == m)))"
"""Over the limit for 300 entries."""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"validations": [{"expression": COSTLY}]}, "actual cost limit exceeded", id="validation"),
        pytest.param(
            {"validations": [{"expression": COSTLY}], "failurePolicy": "Ignore"}, "", id="validation, ignored"
        ),
        pytest.param(
            {"matchConditions": [{"name": "a", "expression": COSTLY}], "failurePolicy": "Ignore"},
            "",
            id="match condition, ignored",
        ),
        pytest.param(
            {"validations": [{"expression": "{'a': 1}[dyn(object.data.keys)] == 1"}]}, "no such key", id="no key"
        ),
    ],
)
async def test_an_expression_over_its_cost_limit_fails_as_others_do(
    tmp_path: Path, fields: Object, expected: str
) -> None:
    """The failure policy decides; the API server does not fail."""
    obj = {**config_map(), "data": {f"k{number}": "v" for number in range(300)}}
    async with plane(tmp_path) as registry:
        found = await outcome(registry, policy(**fields), binding(), obj=obj)
    assert (expected in found, bool(found)) == (True, bool(expected))


async def test_variables_are_found_however_the_expression_is_written(tmp_path: Path) -> None:
    """Spaces and line breaks around the dot; a variable that is not needed is not evaluated."""
    fields = {
        "variables": [
            {"name": "ok", "expression": "object.metadata.name.startsWith('a')"},
            {"name": "bad", "expression": "object.no == 1"},
        ],
        "validations": [
            {"expression": "variables .ok && variables.\n  ok"},
            {"expression": "variables.ok || variables.bad"},
        ],
    }
    async with plane(tmp_path) as registry:
        assert await outcome(registry, policy(**fields), binding()) == ""


@pytest.mark.parametrize(
    ("fields", "bound"),
    [
        pytest.param({"validations": [{"expression": "object.no == 1"}], "failurePolicy": "Ignore"}, {}, id="ignored"),
        pytest.param({"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'b'"}]}, {}, id="unmet"),
        pytest.param({"matchConstraints": {"resourceRules": [{**RULE, "resources": ["pods"]}]}}, {}, id="other kind"),
        pytest.param(
            {"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["b"]}]}}, {}, id="another name"
        ),
        pytest.param(
            {"matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [RULE]}}, {}, id="excluded"
        ),
        pytest.param({}, {"policyName": "q"}, id="not bound"),
        pytest.param({}, {"validationActions": ["Audit"]}, id="audited"),
        pytest.param({}, {"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}, id="another label"),
    ],
)
async def test_writes_that_no_policy_denies(tmp_path: Path, fields: Object, bound: Object) -> None:
    """The write is stored."""
    async with plane(tmp_path) as registry:
        assert await outcome(registry, policy(**fields), binding(**bound)) == ""


async def test_a_reason_has_its_code(tmp_path: Path) -> None:
    """The reason of the validation is that of the response."""
    validations = [{"expression": "false", "message": "no", "reason": "Forbidden"}]
    async with plane(tmp_path) as registry:
        found = await outcome(registry, policy(validations=validations), binding())
    assert found == f"403 Forbidden {DENIED}no"


async def test_warnings(tmp_path: Path) -> None:
    """The action Warn stores the object, with a warning for the client."""
    context = WriteContext()
    async with plane(tmp_path) as registry:
        remote_admission.set_context(context)
        assert await outcome(registry, policy(), binding(validationActions=["Warn", "Audit"])) == ""
    name = "ValidatingAdmissionPolicy 'p' with binding 'b'"
    assert context.warnings == [f"Validation failed for {name}: failed expression: {SMALL}"]


LIMITED = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "validations": [{"expression": "size(object.data) <= int(params.data.max)", "message": "above the limit"}],
}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param({"name": "limit", "namespace": "default"}, "above the limit", id="by name"),
        pytest.param({"name": "limit"}, "above the limit", id="in the namespace of the write"),
        pytest.param({"selector": {"matchLabels": {"limit": "yes"}}}, "above the limit", id="by labels"),
        pytest.param(
            {"name": "other"},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            id="missing",
        ),
    ],
)
async def test_parameters(tmp_path: Path, reference: Object, expected: str) -> None:
    """A binding names the parameters of its policy."""
    limit = {"metadata": {"name": "limit", "namespace": "default", "labels": {"limit": "yes"}}, "data": {"max": "1"}}
    async with plane(tmp_path) as registry:
        await registry.create("configmaps", limit)
        bound = binding(paramRef={**reference, "parameterNotFoundAction": "Deny"})
        assert await outcome(registry, policy(**LIMITED), bound) == f"422 Invalid {DENIED}{expected}"


async def test_missing_parameters_that_are_allowed(tmp_path: Path) -> None:
    """Without parameter objects nothing is evaluated."""
    async with plane(tmp_path) as registry:
        bound = binding(paramRef={"name": "other", "parameterNotFoundAction": "Allow"})
        assert await outcome(registry, policy(**LIMITED), bound) == ""


UNKNOWN = {"paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"}}


@pytest.mark.parametrize("action", ["Deny", "Warn", "Audit"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            UNKNOWN,
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource "
            "referenced by paramKind: 'example.com/v1, Kind=Limit'",
            id="unknown kind",
        ),
        pytest.param(
            {},
            f"{DENIED}failed to configure binding: no params found for policy binding with `Deny` "
            "parameterNotFoundAction",
            id="no object",
        ),
    ],
)
async def test_what_cannot_be_applied_denies(tmp_path: Path, fields: Object, expected: str, action: str) -> None:
    """Whatever the actions of the binding are; only the failure policy Ignore lets the write pass."""
    bound = binding(paramRef={"name": "other", "parameterNotFoundAction": "Deny"}, validationActions=[action])
    async with plane(tmp_path / "fail") as registry:
        found = await outcome(registry, policy(**LIMITED | fields), bound)
    async with plane(tmp_path / "ignore") as registry:
        ignored = await outcome(registry, policy(**LIMITED | fields, failurePolicy="Ignore"), bound)
    assert (found, ignored) == (f"422 Invalid {expected}", "")


async def test_a_deleted_policy_denies_nothing(tmp_path: Path) -> None:
    """Commits update the policies."""
    async with plane(tmp_path) as registry:
        assert await outcome(registry, policy(), binding()) != ""
        await registry.delete(POLICIES, "", "p")
        await registry.create("configmaps", config_map())
