"""Golden captures that the catalog of kinds alone must reproduce: defaults, refusals, conversions, tables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import catalog_pipeline
import pytest

_GOLDEN = Path(__file__).parent / "golden"
_FAMILIES = ("create-hpa", "update-hpa", "scale", "lists-watch", "errors")
_PLACEHOLDER = re.compile(r"<(rv|uid|time|age|generated|ip|object|nodePort|hash)(:[^>]*)?>")
_CAPTURE = re.compile(r"\$\{(\d+):([^}]*)\}")
_ANYTHING = {"generated": "[a-z0-9]{5}", "age": ".*"}
_NOT_OF_THE_CATALOG = {
    "merge-apiversion-change": "the server decodes the patched object in the version that the patch names",
    "namespace-get": "the namespace is there before the case begins",
}

_GIVEN_OUT = ("<ip>", ["<ip>"])
"""Addresses, which the control plane gives out."""

_REFUSED_ELSEWHERE = {400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 500, 504}


def _cases() -> Iterator[Any]:
    """Cases of which at least the first step is about the catalog and nothing else."""
    for family in _FAMILIES:
        for line in (_GOLDEN / f"{family}.jsonl").read_text().splitlines():
            case = json.loads(line)
            step = _steps(case)[0]
            if case["name"] in _NOT_OF_THE_CATALOG:
                continue
            if catalog_pipeline.supports(step["request"]) and step["response"]["status"] not in _REFUSED_ELSEWHERE:
                yield pytest.param(case, id=f"{family}:{case['name']}")


def _steps(case: Any) -> list[Any]:
    return case.get("steps") or [case]


def _filled(value: Any, bodies: list[Any]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, bodies): _filled(part, bodies) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, bodies) for part in value]
    if not isinstance(value, str):
        return value
    value = value.replace("{id}", "qxxxxxxq").replace("{ns}", "ns-qxxxxxxq")
    if whole := _CAPTURE.fullmatch(value):
        return _at(bodies[int(whole[1])], whole[2])
    return _CAPTURE.sub(lambda match: str(_at(bodies[int(match[1])], match[2])), value)


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.strip("/").split("/"):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _project(body: Any, project: Any) -> Any:
    if project is None:
        return body
    return (
        {pointer: _at(body, pointer) for pointer in project} if isinstance(project, dict | list) else _at(body, project)
    )


def _assert_like(want: Any, got: Any, path: str) -> None:
    """Every field of `want` is in `got` and equal, placeholders standing for anything of their kind."""
    if isinstance(want, dict):
        assert isinstance(got, dict), path
        for key, part in want.items():
            if part not in _GIVEN_OUT:
                assert key in got, f"{path}/{key} is missing in {got}"
                _assert_like(part, got[key], f"{path}/{key}")
    elif isinstance(want, list):
        assert isinstance(got, list), path
        assert len(want) == len(got), f"{path}: {got}"
        for index, part in enumerate(want):
            _assert_like(part, got[index], f"{path}/{index}")
    elif isinstance(want, str) and _PLACEHOLDER.search(want):
        pattern = "".join(
            re.escape(piece) if index % 3 == 0 else (_ANYTHING.get(piece, ".+") if index % 3 == 1 else "")
            for index, piece in enumerate(_PLACEHOLDER.split(want))
        )
        assert re.fullmatch(pattern, str(got), re.DOTALL), f"{path}: {got!r} is not like {want!r}"
    else:
        assert want == got, f"{path}: wanted {want!r}, got {got!r}"
        assert type(want) is type(got), path


def _assert_status(want: Any, got: Any) -> None:
    """Refusals: the same causes in any order (upstream's comes in part from map iteration), the same beginning."""
    _assert_like(want["message"].split(" is invalid: ")[0], got["message"].split(" is invalid: ")[0], "message")
    for wanted, given in zip(_causes(want), _causes(got), strict=True):
        _assert_like(wanted, given, "cause")
    assert want["reason"] == got["reason"]


def _causes(status: Any) -> list[Any]:
    return sorted(status["details"]["causes"], key=lambda cause: (cause["field"], cause["reason"], cause["message"]))


@pytest.mark.parametrize("case", list(_cases()))
def test_catalog_agrees_with_the_captures(case: Any) -> None:
    """Each step that needs no store, patch language or HTTP gives what kube-apiserver answered."""
    pipeline = catalog_pipeline.Pipeline()
    bodies: list[Any] = []
    for step in _steps(case):
        request, response = _filled(step["request"], bodies), step["response"]
        if not catalog_pipeline.supports(request) or response["status"] in _REFUSED_ELSEWHERE:
            break
        status, body = pipeline.handle(request)
        bodies.append(body)
        want = _filled(response.get("body"), bodies)
        assert status == response["status"], body
        if status == 422 and want.get("details", {}).get("kind") == body["details"].get("kind"):
            _assert_status(want, body)
        else:
            _assert_like(_of_the_catalog(want), _project(body, step.get("project")), "")


def _of_the_catalog(want: Any) -> Any:
    """Without what the server adds to tables: revision, partial objects."""
    if not isinstance(want, dict) or want.get("kind") != "Table":
        return want
    table = {key: part for key, part in want.items() if key != "metadata"}
    return {**table, "rows": [{"cells": row["cells"]} for row in table["rows"]]}
