"""Bodies: what a request's bytes are taken for, and how they are refused."""

from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import request_bodies
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind

HPA = "HorizontalPodAutoscaler"
V2 = BodyKind("autoscaling/v2", HPA, f"autoscaling/v2.{HPA}")
V1 = BodyKind("autoscaling/v1", HPA, f"autoscaling/v1.{HPA}")
DEPLOYMENT = BodyKind("apps/v1", "Deployment", "apps/v1.Deployment")
KINDS = {(kind.api_version, kind.kind): kind for kind in (V1, V2, DEPLOYMENT)}
UNRECOGNIZED = f"the object provided is unrecognized (must be of type {HPA}): "


def decode(body: str, content_type: str = "application/json", **arguments: Any) -> request_bodies.DecodedBody:
    """Decode a body that should be an autoscaling/v2 HorizontalPodAutoscaler."""
    return request_bodies.decode(body.encode(), content_type, V2, KINDS, **arguments)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param('{"metadata": {"name": "a"}}', "application/json", id="JSON"),
        pytest.param('{"metadata": {"name": "a"}}', "", id="no content type"),
        pytest.param('{"metadata": {"name": "a"}}', "Application/JSON; charset=utf-8", id="parameters"),
        pytest.param("metadata: {name: a}", "application/yaml", id="YAML"),
        pytest.param('{"metadata": {"name": "a"}, "apiVersion": "autoscaling/v2"}', "application/json", id="version"),
    ],
)
def test_same_object(body: str, content_type: str) -> None:
    """However it is written, the object says what it is, and what it does not say is taken from the path."""
    received = decode(body, content_type)
    assert received.obj == {"kind": HPA, "apiVersion": "autoscaling/v2", "metadata": {"name": "a"}}
    assert received.kind == V2


def test_warnings_are_told_one_by_one() -> None:
    """Unknown and repeated fields are warnings; those of a YAML decoder are split."""
    received = decode("metadata:\n  name: a\n  name: b\nspec:\n  x: 1\n", "application/yaml")
    assert received.warnings == ('line 3: key "name" already set in map', 'unknown field "spec.x"')


def test_ignored_problems() -> None:
    """A client that ignores problems hears nothing of them."""
    assert decode('{"spec": {"x": 1}}', validation="Ignore").warnings == ()


def test_strict() -> None:
    """A strict client gets an API error with all problems."""
    with pytest.raises(StatusError) as raised:
        decode('{"spec": {"x": 1, "y": 1}}', validation="Strict")
    assert (raised.value.code, raised.value.message) == (
        400,
        f'{HPA} in version "v2" cannot be handled as a {HPA}: strict decoding error: '
        'unknown field "spec.x", unknown field "spec.y"',
    )


@pytest.mark.parametrize(
    ("body", "content_type", "code", "text"),
    [
        pytest.param(
            "",
            "",
            400,
            UNRECOGNIZED + "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
            id="empty",
        ),
        pytest.param(
            "hi",
            "",
            400,
            UNRECOGNIZED + "couldn't get version/kind; json parse error: "
            "invalid character 'h' looking for beginning of value (6869)",
            id="no JSON",
        ),
        pytest.param(
            '{"kind": 5}',
            "",
            400,
            UNRECOGNIZED + "couldn't get version/kind; json parse error: json: "
            'cannot unmarshal number into Go struct field .kind of type string ({"kind": 5})',
            id="kind",
        ),
        pytest.param(
            '{"apiVersion": "a/b/c", "kind": "X"}',
            "",
            400,
            UNRECOGNIZED + 'unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)',
            id="group version",
        ),
        pytest.param(
            "nonsense",
            "application/vnd.kubernetes.protobuf",
            400,
            UNRECOGNIZED + "provided data does not "
            "appear to be a protobuf message, expected prefix [107 56 115 0] (6e6f6e73656e7365)",
            id="protobuf",
        ),
        pytest.param(
            '{"kind": "Pod"}',
            "",
            400,
            f'Pod in version "v2" cannot be handled as a {HPA}: no kind "Pod" is '
            'registered for version "autoscaling/v2" in scheme "pkg/runtime/scheme.go:111"',
            id="unknown",
        ),
        pytest.param(
            '{"kind": "Deployment", "apiVersion": "apps/v1"}',
            "",
            400,
            'Deployment in version "v1" cannot be '
            f"handled as a {HPA}: converting (v1.Deployment) to (autoscaling.{HPA}): unknown conversion",
            id="another kind",
        ),
        pytest.param(
            '{"spec": []}',
            "",
            400,
            f'{HPA} in version "v2" cannot be handled as a {HPA}: json: cannot '
            f"unmarshal array into Go struct field {HPA}.spec of type v2.{HPA}Spec",
            id="type",
        ),
        pytest.param(
            "{}",
            "text/plain",
            415,
            "the body of the request was in an unknown format - accepted media "
            "types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            id="content type",
        ),
    ],
)
def test_errors(body: str, content_type: str, code: int, text: str) -> None:
    """What cannot be decoded as the expected kind is an error in upstream's words."""
    with pytest.raises(StatusError) as raised:
        decode(body, content_type)
    assert (raised.value.code, raised.value.message) == (code, text)


def test_another_version_is_decoded_as_itself_then_refused() -> None:
    """An object of another version is read by that version's rules; the path decides whether it may be one."""
    body = '{"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 5}}'
    received = decode(body)
    assert (received.kind, received.warnings) == (V1, ())
    with pytest.raises(StatusError) as raised:
        request_bodies.check_version(received, V2)
    assert raised.value.message == (
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"
    )
