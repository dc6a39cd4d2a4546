"""Bodies of answers: YAML as Go writes it, bare metadata, lists."""

import json
from typing import Any

import pytest

from podscaler.api.kinds.autoscaling import hpa
from podscaler.api.kinds.core import metrics
from podscaler.api.openapi.openapi_definitions import GVK_EXTENSION
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver import health_checks
from podscaler.controlplane.apiserver.discovery import openapi_v2, openapi_v3
from podscaler.controlplane.apiserver.http import negotiation, query_options, response_encoder, responses
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.apiserver.streaming import watch_streams
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.listing import ListPage


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": {"d": [], "c": {}}}, "a:\n  c: {}\n  d: []\nb: 1\n", id="sorted"),
        pytest.param({"a": [{"x": 1, "y": [2]}]}, 'a:\n- x: 1\n  "y":\n  - 2\n', id="lists are not indented"),
        pytest.param({"a": "1"}, 'a: "1"\n', id="a text that reads as a number"),
        pytest.param({"a": "1e3"}, 'a: "1e3"\n', id="a text that reads as a float"),
        pytest.param({"a": "true", "b": "null", "c": ""}, 'a: "true"\nb: "null"\nc: ""\n', id="words"),
        pytest.param({"a": "2024-01-01T00:00:00Z"}, 'a: "2024-01-01T00:00:00Z"\n', id="a time"),
        pytest.param({"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="lines"),
        pytest.param({"a": "b: c"}, "a: 'b: c'\n", id="punctuation"),
        pytest.param({"a": None, "b": True, "c": 1.5}, "a: null\nb: true\nc: 1.5\n", id="scalars"),
        pytest.param({"a": "é" * 100}, f"a: {'é' * 100}\n", id="long and not ASCII"),
        pytest.param({"a": "w " * 100 + "w"}, f"a: {'w ' * 100}w\n", id="no folding"),
    ],
)
def test_yaml(value: Any, text: str) -> None:
    """YAML is written as Go's library writes it."""
    assert responses.to_yaml(value).decode() == text


async def test_of_json_as_yaml() -> None:
    """Prepared JSON can still be asked for as YAML."""
    answer = await responses.from_json(b'{"a":1}', negotiation.Form("yaml"))
    assert answer == EncodedResponse(b"a: 1\n", 200, "application/yaml")


async def test_an_error_keeps_headers() -> None:
    """An API error is its Status, with the headers that it asks for."""
    error = StatusError("later", code=503, reason="ServiceUnavailable", headers={"Retry-After": "1"})
    answer = await responses.from_error(error, negotiation.PLAIN_JSON)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})


def test_partial() -> None:
    """Bare metadata is the stored text of the metadata."""
    body = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"\\u003c"}},"spec":{}}'
    assert response_encoder.partial(body, "v1") == (
        b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
        b'"metadata":{"name":"p","labels":{"a":"\\u003c"}}}'
    )


def test_partial_without_what_stands_for_fields() -> None:
    """Annotations of a conversion are no metadata of the object; with the last of them the map goes."""
    hidden = frozenset({"count", "more"})
    body = b'{"metadata":{"name":"p","annotations":{"a":"b","count":"1"}}}'
    head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p"'
    assert response_encoder.partial(body, "v1", hidden) == head + b',"annotations":{"a":"b"}}}'
    assert response_encoder.partial(body.replace(b'"a":"b",', b""), "v1", hidden) == head + b"}}"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param(ListPage([], 7), {"resourceVersion": "7"}, id="all"),
        pytest.param(
            ListPage([], 7, "token", 3),
            {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3},
            id="a first page",
        ),
        pytest.param(ListPage([], 0), {}, id="computed objects"),
    ],
)
def test_list_metadata(page: ListPage, expected: dict[str, Any]) -> None:
    """A list says of which revision it is and how to go on."""
    assert response_encoder.list_metadata(page) == expected


def test_include_object() -> None:
    """Tables carry metadata unless asked otherwise; what is not a choice is refused."""
    assert [response_encoder.include_object(text) for text in ("", "None", "Object")] == ["Metadata", "None", "Object"]
    with pytest.raises(StatusError, match='includeObject: Invalid value: "Everything": must be'):
        response_encoder.include_object("Everything")


def test_zero_objects() -> None:
    """A bookmark has the fields that Go writes for an empty object of the kind."""
    assert watch_streams.zero_fields("autoscaling/v2.HorizontalPodAutoscaler") == {
        "spec": {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }
    assert watch_streams.zero_fields("example.com/v1.Unknown") == {}


def test_entries_of_computed_objects_have_no_version() -> None:
    """An object that is not stored has no resourceVersion."""
    entry = entries.from_object("pods.metrics.k8s.io", {"metadata": {"name": "p", "namespace": "n"}}, 0)
    assert entry.body == b'{"metadata":{"name":"p","namespace":"n"}}'


HEALTHY = {"etcd": lambda: ""}
FAILING = {"etcd": lambda: "disk full"}


@pytest.mark.parametrize(
    ("path", "query", "status", "text"),
    [
        pytest.param("/healthz", "", 200, "ok", id="healthy"),
        pytest.param("/livez/ping", "", 200, "ok", id="one check"),
        pytest.param("/livez/etcd", "verbose", 200, "ok", id="the storage"),
        pytest.param("/livez/poststarthook/rbac/bootstrap-roles", "", 200, "ok", id="a hook"),
        pytest.param("/readyz/etcd-readiness", "", 200, "ok", id="the storage, of readiness"),
        pytest.param("/livez/etcd-readiness", "", 404, "404 page not found\n", id="a check of readiness alone"),
        pytest.param("/livez", "exclude=nope", 200, "ok", id="exclude"),
    ],
)
def test_health(path: str, query: str, status: int, text: str) -> None:
    """Health endpoints answer as upstream's."""
    answer = health_checks.respond(path, Query(query), HEALTHY)
    assert (answer.status, answer.body.decode()) == (status, text)


def test_ill_health() -> None:
    """A failing check is a 500 that says why, among all checks; `exclude` leaves it out, and reports wrong names."""
    answer = health_checks.respond("/livez", query_options.EMPTY_QUERY, FAILING)
    assert (answer.status, answer.headers) == (500, {"X-Content-Type-Options": "nosniff"})
    lines = answer.body.decode().splitlines()
    assert (lines[3], lines[-1]) == ("[-]etcd failed: disk full", "livez check failed")
    assert [line for line in lines if line.startswith("[-]")] == [lines[3]]
    one = health_checks.respond("/livez/etcd", query_options.EMPTY_QUERY, FAILING)
    assert (one.status, one.body) == (500, b"internal server error: disk full\n")


def test_excluded_checks() -> None:
    """An excluded check is not made, and names of none are reported."""
    answer = health_checks.respond("/readyz", Query("verbose&exclude=etcd&exclude=nope"), FAILING)
    warning = 'warn: some health checks cannot be excluded: no matches for "nope"'
    assert answer.body.decode().splitlines()[2] == "[+]etcd excluded: ok"
    assert answer.body.decode().splitlines()[-2:] == [warning, "readyz check failed"]


def test_openapi_v2_says_which_kinds_validate_fields() -> None:
    """The old document, in protobuf as in JSON, has a PATCH with `fieldValidation` for each stored kind and version."""
    routes = Routes([hpa.RESOURCE, metrics.NODE_METRICS])
    document: Any = openapi_v2._message_class("Document").FromString(openapi_v2.protobuf_document(routes, {}))
    found = {}
    for path in document.paths.path:
        [parameter] = path.value.patch.parameters
        [extension] = path.value.patch.vendor_extension
        assert parameter.parameter.non_body_parameter.query_parameter_sub_schema.name == "fieldValidation"
        found[path.name] = json.loads(extension.value.yaml)
    root = "namespaces/{namespace}/horizontalpodautoscalers/{name}"
    assert found == {
        f"/apis/autoscaling/{version}/{root}": {
            "group": "autoscaling",
            "version": version,
            "kind": "HorizontalPodAutoscaler",
        }
        for version in ("v2", "v1")
    }
    assert json.loads(openapi_v2.json_document(routes, {}))["paths"].keys() == found.keys()


def test_openapi_v2_has_the_schemas_as_definitions() -> None:
    """Clients of the old document find types, references, required fields and values of enumerations in it."""
    schemas = {
        "a.B": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"type": "string", "enum": ["x"], "default": ""},
                "all": {"type": "array", "items": {"$ref": "#/components/schemas/a.C"}, "x-list": "atomic"},
                "by": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    }
    document: Any = openapi_v2._message_class("Document").FromString(openapi_v2.protobuf_document(Routes([]), schemas))
    [definition] = document.definitions.additional_properties
    found = {each.name: each.value for each in definition.value.properties.additional_properties}
    assert (definition.name, list(definition.value.required)) == ("a.B", ["kind"])
    assert (list(found["kind"].type.value), [each.yaml for each in found["kind"].enum]) == (["string"], ['"x"'])
    assert found["all"].items.schema[0]._ref == "#/definitions/a.C"
    assert [(each.name, each.value.yaml) for each in found["all"].vendor_extension] == [("x-list", '"atomic"')]
    assert list(found["by"].additional_properties.schema.type.value) == ["string"]
    assert list(json.loads(openapi_v2.json_document(Routes([]), schemas))["definitions"]) == ["a.B"]


def test_openapi_v2_has_validations_in_protobuf() -> None:
    """The validations of custom resources are in the protobuf form as in JSON."""
    schemas = {"web": {"type": "object", "properties": {"a": {"pattern": "^a$", "maxLength": 3, "minimum": 1.5}}}}
    document: Any = openapi_v2._message_class("Document").FromString(openapi_v2.protobuf_document(Routes([]), schemas))
    [web] = document.definitions.additional_properties
    [field] = web.value.properties.additional_properties
    assert (field.name, field.value.pattern, field.value.max_length, field.value.minimum) == ("a", "^a$", 3, 1.5)


def test_schemas_of_several_documents() -> None:
    """A schema that several documents have is of all the kinds that they name."""
    kinds = [{"group": group, "version": "v1", "kind": "Options"} for group in ("", "apps", "batch")]
    found = [[kinds[2]], [], [kinds[0], kinds[1]]]
    documents = {
        str(number): openapi_v3._build_document(
            lambda named=named: {"components": {"schemas": {"Options": {"type": "object", GVK_EXTENSION: named}}}}
        )
        for number, named in enumerate(found)
    }
    assert openapi_v3._schemas(documents) == {"Options": {"type": "object", GVK_EXTENSION: kinds}}
