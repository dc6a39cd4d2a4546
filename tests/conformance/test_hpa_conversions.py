"""Every autoscaler of the table in every version: hpa_conversions.jsonl, checked by hand against the rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.schema import decoding

CASES = [json.loads(line) for line in (Path(__file__).parent / "hpa_conversions.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['name']} to {case['to']}" for case in CASES])
def test_conversion(case: dict[str, Any]) -> None:
    """The object, its annotations and what is said to be lost are those of the table, texts to the byte."""
    given = decoding.decode_value(case["given"], conversion.VERSIONS[case["given"]["apiVersion"]].message)
    converted = conversion.convert(given.obj, case["to"])
    assert (converted.obj, [str(loss) for loss in converted.losses], given.problems) == (
        case["converted"],
        case["losses"],
        (),
    )
