"""schemathesis against the OpenAPI documents that are served: they are valid, and answers are what they say.

In `make test` schemathesis asks the operations of a few groups only, and makes fewer bodies than other requests: those
of a schema as large as a Pod's take it half a second each. test_fuzz_operations asks all operations.
"""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import fuzz_budget as budget
import pytest
import requests
import schemathesis
from fuzz_client import Answer, Request
from fuzz_server import RESOURCES, Target, any_token
from fuzz_verdict import check
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import APIOperation, BaseSchema, Case, Response
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from schemathesis.specs.openapi.definitions import OPENAPI_30_VALIDATOR

import sampling
from podscaler.api.openapi import openapi
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS

BASE_URL = "http://fuzz"
DOCUMENTS = openapi.documents(RESOURCES, [review.endpoint for review in REVIEWS])
FEW = ("apis/autoscaling/v2", "apis/coordination.k8s.io/v1", "apis/policy/v1", "api", "version")
CUSTOM = "apis/fuzz.example.com/v1"
SMALL_GROUPS = DOCUMENTS if budget.IS_LONG else FEW
_PRICES = {"post": 25, "put": 25, "delete": 5, "patch": 5}
"""How many reads an operation of the method costs: bodies are made of schemas."""


@cache
def _schema(document: str) -> BaseSchema:
    return schemathesis.openapi.from_dict(DOCUMENTS[document]())


def _operations() -> Iterator[Any]:
    for document in SMALL_GROUPS:
        for found in _schema(document).get_all_operations():
            operation = found.ok()
            if budget.wants(operation.label) and "/watch/" not in operation.path:
                yield pytest.param(operation, id=operation.label)


@pytest.mark.parametrize("operation", sampling.one_in(4, _operations()))
def test_operation_by_its_schema(target: Target, operation: APIOperation) -> None:
    """Whatever the schema lets through is answered with a Status, or with what the document says."""
    target.ensure()
    _ask(target, operation)


def test_operations_of_custom_kinds(target: Target) -> None:
    """The same of kinds that a CustomResourceDefinition made."""
    document = _served(target, f"/openapi/v3/{CUSTOM}")
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        if budget.wants(found.ok().label) and "/watch/" not in found.ok().path:
            target.ensure()
            _ask(target, found.ok())


def test_documents_are_valid(target: Target) -> None:
    """Every document that is served is one of OpenAPI 3.0, without a reference that leads nowhere."""
    for path, place in _served(target, "/openapi/v3")["paths"].items():
        document = _served(target, place["serverRelativeURL"])
        assert [str(error) for error in OPENAPI_30_VALIDATOR.iter_errors(document)] == [], path
        schemas = document.get("components", {}).get("schemas", {})
        assert {each.rpartition("/")[2] for each in _references(document)} <= schemas.keys(), path


def test_operations_have_names_of_their_own(target: Target) -> None:
    """No two operations of a document share an operationId, and each declares the parameters of its path."""
    for path, place in _served(target, "/openapi/v3")["paths"].items():
        names = []
        for template, item in _served(target, place["serverRelativeURL"])["paths"].items():
            operations = {method: item[method] for method in item if method != "parameters"}
            names += [operation["operationId"] for operation in operations.values() if "operationId" in operation]
            declared = {each["name"] for each in item.get("parameters", []) if each["in"] == "path"}
            assert declared == {part[1:-1] for part in template.split("/") if part.startswith("{")}, template
        assert len(set(names)) == len(names), path


def _served(target: Target, path: str) -> Any:
    content = target.client.send(Request("GET", path)).content
    assert content is not None
    return json.loads(content)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _ask(target: Target, operation: APIOperation) -> None:
    @budget.part(_PRICES.get(operation.method, 1))
    @given(operation.as_strategy(), st.sampled_from(["fuzz", "fuzz", ""]), budget.SEEDS)
    def ask(case: Case, name: str, seed: int) -> None:
        prepared = _prepared(case, name)
        asked = _request(prepared, any_token(random.Random(seed)))
        answer = target.client.send(asked)
        check(answer, asked, target.alarm)
        if answer.status in (200, 201) and answer.content is not None:
            _validate(case, answer, prepared)

    ask()


def _validate(case: Case, answer: Answer, prepared: requests.PreparedRequest) -> None:
    """Fail where an answer is not what its document says, but for null, which stands for nothing or for Go's zero.

    Upstream's documents say neither. Nothing will not do for what is required: the limits of a LimitRange, the
    eventTime of an Event.
    """
    try:
        case.validate_response(_response(answer, prepared, _without_null), checks=_checks(case))
    except FailureGroup:
        case.validate_response(_response(answer, prepared, _with_zeros), checks=_checks(case))


def _checks(case: Case) -> list[Any]:
    """A delete answers with the object where it stays for now, which upstream's documents do not say either."""
    return (
        [content_type_conformance]
        if case.method == "DELETE"
        else [content_type_conformance, response_schema_conformance]
    )


def _prepared(case: Case, name: str) -> requests.PreparedRequest:
    """The request of a case, mostly about the object that there is; nothing is removed by it."""
    if name and "name" in (case.path_parameters or {}):
        case.path_parameters = {**case.path_parameters, "name": name}
    if name and "namespace" in (case.path_parameters or {}):
        case.path_parameters = {**case.path_parameters, "namespace": "default"}
    if case.method == "DELETE":
        case.query = {**(case.query or {}), "dryRun": "All"}
    given_parts = case.as_transport_kwargs(base_url=BASE_URL)
    known = {
        key: value
        for key, value in given_parts.items()
        if key in ("method", "url", "headers", "params", "data", "json", "files")
    }
    return requests.Request(**known).prepare()


def _request(prepared: requests.PreparedRequest, token: str) -> Request:
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
    headers = tuple(
        (name, _text(value))
        for name, value in prepared.headers.items()
        if name not in ("Content-Length", "Host", "Transfer-Encoding")
    )
    return Request(prepared.method or "", prepared.path_url, headers, body if isinstance(body, bytes) else None, token)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _response(answer: Answer, prepared: requests.PreparedRequest, plain: Callable[[Any], Any]) -> Response:
    headers: dict[str, list[str]] = {}
    for name, value in answer.headers.items():
        headers.setdefault(name, []).append(value)
    content = answer.content or b""
    if answer.media_type == "application/json":
        content = json.dumps(plain(json.loads(content))).encode()
    return Response(answer.status, headers, content, prepared, 0.0, False)


def _without_null(value: Any) -> Any:
    """Without members that are null."""
    if isinstance(value, dict):
        return {key: _without_null(part) for key, part in value.items() if part is not None}
    return [_without_null(part) for part in value] if isinstance(value, list) else value


def _with_zeros(value: Any) -> Any:
    """With Go's zero time for each null that is called a time, and an empty list for each other null."""
    if isinstance(value, dict):
        return {key: _zero(key) if part is None else _with_zeros(part) for key, part in value.items()}
    return [_with_zeros(part) for part in value] if isinstance(value, list) else value


def _zero(name: str) -> Any:
    return "0001-01-01T00:00:00Z" if name.endswith(("Time", "Timestamp")) else []
