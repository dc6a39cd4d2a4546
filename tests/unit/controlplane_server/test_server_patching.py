"""Patches as requests carry them: parsing, the schema of strategic merges, decoding what comes out."""

from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import patching, strategic_merge
from podscaler.controlplane.apiserver.handlers.patching import Patch, Patcher
from podscaler.controlplane.apiserver.handlers.strategic_merge import MessageSchema
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind

DEPLOYMENT = BodyKind("apps/v1", "Deployment", "apps/v1.Deployment")
KINDS = {(DEPLOYMENT.api_version, DEPLOYMENT.kind): DEPLOYMENT}


@pytest.mark.parametrize(
    ("body", "patch_type", "text"),
    [
        pytest.param("", "merge", "invalid JSON patch", id="nothing"),
        pytest.param("{", "strategic", "invalid JSON patch", id="no JSON"),
        pytest.param("null", "merge", "Invalid JSON Patch", id="null"),
        pytest.param(
            "[]",
            "merge",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list for merge",
        ),
        pytest.param(
            '"x"',
            "strategic",
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
            id="a text for strategic merge",
        ),
        pytest.param(
            "{}",
            "json",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="an object for JSON patch",
        ),
        pytest.param(
            '{"a":1e400}',
            "merge",
            "error decoding patch: json: cannot unmarshal number 1e400 into Go value of type float64",
            id="a number beyond all for merge",
        ),
        pytest.param(
            '{"a":[-1e400]}',
            "strategic",
            "json: cannot unmarshal number -1e400 into Go value of type float64",
            id="a number beyond all for strategic merge",
        ),
    ],
)
def test_what_is_no_patch(body: str, patch_type: patching.PatchType, text: str) -> None:
    """A body of the wrong shape is a 400."""
    with pytest.raises(StatusError) as raised:
        patching.parse_patch(body.encode(), patch_type)
    assert (raised.value.code, raised.value.message) == (400, text)


@pytest.mark.parametrize(
    ("body", "patch_type", "problems"),
    [
        pytest.param('{"a":1}', "merge", (), id="none"),
        pytest.param(
            '{"a":{"b":1,"b":2},"c":[{"d":1,"d":1,"d":1}]}',
            "merge",
            ('duplicate field "a.b"', 'duplicate field "c[0].d"'),
            id="repeated fields, each told once",
        ),
        pytest.param(
            '[{"op":"add","path":"/a","value":1,"x":1}]',
            "json",
            ('json patch unknown field "[0].x"',),
            id="a member that operations do not have",
        ),
    ],
)
def test_problems(body: str, patch_type: patching.PatchType, problems: tuple[str, ...]) -> None:
    """What a strict server does not like about the document itself."""
    assert patching.parse_patch(body.encode(), patch_type).problems == problems


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param(
            {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}}},
            {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "2"}]}}}},
            {
                "spec": {
                    "template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}}
                }
            },
            id="containers by name",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}},
            {"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}},
            {"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}},
            id="tolerations are replaced",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}},
            {"metadata": {"labels": {"b": "2"}, "finalizers": ["y"]}},
            {"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["y", "x"]}},
            id="labels merge, finalizers are a set",
        ),
        pytest.param(
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="a union changes",
        ),
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"a": "1"}}}},
            {"spec": {"selector": {"matchLabels": {"b": "2"}}}},
            {"spec": {"selector": {"matchLabels": {"a": "1", "b": "2"}}}},
            id="a selector is an object like others",
        ),
    ],
)
def test_deployment_schema(original: Any, patch: Any, expected: Any) -> None:
    """Strategic merges of a Deployment follow the keys that its type declares."""
    assert strategic_merge.apply_strategic_merge(original, patch, MessageSchema(DEPLOYMENT.message)) == expected


def decoded(patch: Any, validation: Any = "Warn", warnings: list[str] | None = None) -> Any:
    """A Deployment with a merge patch applied."""
    stored = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": {"replicas": 1}}
    made = Patcher(Patch("merge", patch), DEPLOYMENT, KINDS, validation, [] if warnings is None else warnings)
    return made.patch_and_decode(stored)[0]


def test_warnings() -> None:
    """Unknown fields of the outcome are dropped and told."""
    warnings: list[str] = []
    assert decoded({"spec": {"x": 1}}, warnings=warnings)["spec"] == {"replicas": 1}
    assert warnings == ['unknown field "spec.x"']


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        pytest.param({"spec": {"x": 1}}, 'strict decoding error: unknown field "spec.x"', id="unknown field"),
        pytest.param(
            {"spec": {"replicas": "1"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            id="type",
        ),
        pytest.param(
            {"kind": "Pod"},
            'no kind "Pod" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"',
            id="kind",
        ),
    ],
)
def test_outcome_is_refused(patch: Any, text: str) -> None:
    """An outcome that cannot be decoded is a 422 at `patch`, as upstream has it."""
    with pytest.raises(StatusError) as raised:
        decoded(patch, "Strict")
    [cause] = raised.value.causes
    assert (raised.value.code, cause.field, cause.message.endswith(text)) == (422, "patch", True)


def test_strategic_merges_tell_problems_in_their_order() -> None:
    """Unknown fields that a strategic merge brings are told sorted, as upstream tells them."""
    stored = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": {"replicas": 1}}
    patch = Patch("strategic", {"spec": {"x": 1, "strategy": {"b": 1, "a": 1}}})
    warnings: list[str] = []
    Patcher(patch, DEPLOYMENT, KINDS, "Warn", warnings).patch_and_decode(stored)
    assert warnings == [f'unknown field "spec.{name}"' for name in ("strategy.a", "strategy.b", "x")]
