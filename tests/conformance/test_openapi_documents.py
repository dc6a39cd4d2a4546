"""OpenAPI documents, against what kube-apiserver v1.37 served (golden discovery.jsonl).

Descriptions, and whatever is called managedFields, were removed from the captures.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.openapi import openapi

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    case
    for case in map(json.loads, (GOLDEN / "discovery.jsonl").read_text().splitlines())
    if case.get("request", {}).get("path", "").startswith("/openapi/v3/apis/autoscaling/")
]
DOCUMENTS = {
    f"autoscaling/{version}": openapi.document(f"autoscaling/{version}", catalog.RESOURCES) for version in ("v1", "v2")
}


def at(document: Any, pointer: str) -> Any:
    """The part of a document at a JSON pointer."""
    for part in pointer.split("/")[1:]:
        document = document[part.replace("~1", "/").replace("~0", "~")]
    return document


def without_descriptions(value: Any) -> Any:
    """The value without what the captures lack."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key != "description" or not isinstance(part, str)}
        return {key: without_descriptions(part) for key, part in kept.items()}
    return [without_descriptions(part) for part in value] if isinstance(value, list) else value


def parts(case: Any, document: Any) -> Any:
    """What a case looks at; operations' own descriptions are compared, those inside are not."""
    wanted = case["project"]
    if isinstance(wanted, str):
        part = without_descriptions(at(document, wanted))
        part.get("properties", {}).pop("managedFields", None)
        return part
    return {pointer: without_descriptions(at(document, pointer)) for pointer in wanted}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_part_equals_the_golden_one(case):
    """Schemas, operations, parameters and kinds are upstream's."""
    document = DOCUMENTS[case["request"]["path"].removeprefix("/openapi/v3/apis/")]
    assert parts(case, document) == case["response"]["body"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_whole_document_equals_the_golden_one(version):
    """The whole documents of autoscaling are upstream's, descriptions aside."""
    golden = json.loads((GOLDEN / f"openapi-v3-autoscaling-{version}.json").read_text())
    assert without_descriptions(DOCUMENTS[f"autoscaling/{version}"]) == golden


def test_the_golden_index_is_covered():
    """There is a document for every path of the golden index whose group is served."""
    line = next(line for line in (GOLDEN / "discovery.jsonl").read_text().splitlines() if '"openapi-v3-index"' in line)
    golden = set(json.loads(line)["response"]["body"]["paths"])
    assert golden <= set(openapi.documents(catalog.RESOURCES))
