"""The requests that a real API server was asked, as they were, and with parts of their bodies wrong."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_bodies as bodies
import fuzz_budget as budget
import fuzz_objects as objects
import pytest
from fuzz_client import Request
from fuzz_server import Target
from fuzz_verdict import check
from hypothesis import given

import sampling

CAPTURES = Path(__file__).parents[1] / "conformance"
FAMILIES = sorted(
    path.relative_to(CAPTURES)
    for path in CAPTURES.glob("*/*.jsonl")
    if path.stem != "kubectl" and path.parent.name != "transcripts"
)
NAMES = {"{ns}": "default", "{id}": "fuzz"}
EXAMPLES = 4
"""Of each family so many times as many as of an operation: a family is about many."""


@cache
def _requests(family: Path) -> tuple[dict[str, Any], ...]:
    """The requests with a body of JSON; what they capture of earlier answers is left as it is."""
    text = (CAPTURES / family).read_text(encoding="utf-8")
    for placeholder, name in NAMES.items():
        text = text.replace(placeholder, name)
    cases = map(json.loads, text.splitlines())
    steps = [step for case in cases for step in case.get("steps") or [case]]
    found = tuple(step["request"] for step in steps if "body" in step.get("request", {}))
    assert found
    return found


@pytest.mark.parametrize("family", sampling.one_in(4, FAMILIES), ids=str)
def test_captured_request(target: Target, family: Path) -> None:
    """No mutation of what is known to be asked makes the server fail."""
    target.ensure()

    @budget.of(budget.EXAMPLES * EXAMPLES)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        rng = random.Random(f"{family} {seed}")
        captured = rng.choice(_requests(family))
        query = "&".join(f"{name}={value}" for name, value in (captured.get("query") or {}).items() if value.isalnum())
        headers = {"Content-Type": bodies.JSON, **(captured.get("headers") or {})}
        asked = Request(
            captured["method"],
            f"{captured['path']}?{query}",
            tuple(headers.items()),
            bodies.json_of(objects.mutated(rng, captured["body"], times=4)),
        )
        check(target.client.send(asked), asked, target.alarm)

    ask()
