"""The trace can never disagree with the decision: replicas, conditions and error follow from its JSON alone."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest
import trace_checker

import sampling
from podscaler.core import replay

VECTORS = Path(__file__).parent / "vectors"
NAMES = sorted(path.name.partition(".")[0] for path in VECTORS.glob("*.recording.jsonl.gz"))


@pytest.mark.parametrize("name", sampling.one_in(3, NAMES))
def test_trace_tells_the_whole_decision(name: str) -> None:
    """An independent checker recomputes each line of a recording from the trace."""
    with gzip.open(VECTORS / f"{name}.recording.jsonl.gz") as lines:
        for number, decision in enumerate(replay.decisions(lines, with_trace=True), 2):
            line = json.loads(msgspec.json.encode(decision))
            decided = (line["replicas"], line["status"].get("conditions", []), line["error"])
            assert trace_checker.check(line["trace"]) == decided, f"line {number} of {name}"
