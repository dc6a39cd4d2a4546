"""Every decision of the recorded reference, line by line: what Kubernetes v1.37.0's own controller did.

`vectors/NAME.recording.jsonl.gz` holds what each sync saw, `vectors/NAME.decisions.jsonl.gz` what it did. Lines are
compared as they would be on the wire: an absent field, null, an empty container, an empty text and zero are the same,
but for `replicas`, where null means that nothing was written. The order in which a message names overlapping
autoscalers, and how a time is written, mean nothing.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.core import replay

VECTORS = Path(__file__).parent / "vectors"
NAMES = sorted(path.name.partition(".")[0] for path in VECTORS.glob("*.recording.jsonl.gz"))
OVERLAP = re.compile(r"\(e\.g\. \[([^\]]*)\]\)")


def on_the_wire(value: Any) -> Any:
    """`value` without what means nothing."""
    if isinstance(value, dict):
        kept = {key: on_the_wire(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", 0, {}, [])}
    if isinstance(value, list):
        return [on_the_wire(item) for item in value]
    if isinstance(value, str):
        return OVERLAP.sub(lambda match: f"(e.g. [{' '.join(sorted(match[1].split()))}])", value)
    return value


def comparable(decision: dict[str, Any]) -> dict[str, Any]:
    """A decision line in the form in which equal ones are equal."""
    plain = on_the_wire({key: value for key, value in decision.items() if key != "trace"})
    return plain | {"time": instants.parse(decision["time"]), "replicas": repr(decision["replicas"])}


def decided(name: str) -> list[dict[str, Any]]:
    """Our decisions for a recording."""
    with gzip.open(VECTORS / f"{name}.recording.jsonl.gz") as lines:
        return [json.loads(msgspec.json.encode(decision)) for decision in replay.decisions(lines)]


def reference(name: str) -> list[dict[str, Any]]:
    """The reference's decisions."""
    with gzip.open(VECTORS / f"{name}.decisions.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def test_all_vectors_are_here() -> None:
    """The fifteen kinds of recordings are all compared."""
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_agrees_on_every_line(name: str) -> None:
    """Each sync writes what the reference wrote, with the same status, events and error."""
    ours, theirs = decided(name), reference(name)
    assert len(ours) == len(theirs)
    for line, (our, their) in enumerate(zip(ours, theirs, strict=True), 2):
        assert comparable(our) == comparable(their), f"line {line} of {name}"
