"""What the commands that read files make of any file: their answer, or one sentence and exit status 2."""

import gzip
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_bodies as bodies
import fuzz_budget as budget
import fuzz_manifests as manifests
import fuzz_objects as objects
import pytest
from click.testing import CliRunner
from hypothesis import given

from podscaler.api.text import yaml_output
from podscaler.cli.main import cli

TESTS = Path(__file__).parents[1]
RECORDINGS = ("scale-up", "failing-metric", "policy", "from-zero", "restart")
VECTORS = ("behavior", "everything", "extreme")
COMMANDS = (
    ("lint", "-"),
    ("lint", "-", "-o", "sarif"),
    ("convert", "-", "--to", "autoscaling/v1"),
    ("convert", "-", "--to", "extensions/v1beta1", "-o", "json"),
    ("replay", "-", "--trace"),
    ("replay", "-", "--algorithm", "v1.1"),
    ("explain", "-"),
    ("explain", "-", "-o", "json", "--what-if", "maxReplicas=3"),
)
LINES_AT_MOST = 12


@cache
def _recorded() -> tuple[tuple[bytes, ...], ...]:
    """The lines of some recordings, without most of the long ones."""
    plain = [(TESTS / "scenario" / "explain" / f"{name}.recording.jsonl").read_bytes() for name in RECORDINGS]
    folder = TESTS / "conformance" / "vectors"
    plain += [gzip.decompress((folder / f"{name}.recording.jsonl.gz").read_bytes()) for name in VECTORS]
    return tuple(tuple(text.splitlines()[:LINES_AT_MOST]) for text in plain)


def _recording(rng: random.Random) -> bytes:
    lines = list(rng.choice(_recorded()))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        lines[at] = bodies.json_of(_changed(rng, json.loads(lines[at])))
    return b"\n".join(lines) + b"\n"


def _changed(rng: random.Random, value: Any) -> Any:
    return objects.mutated(rng, value, times=2)


def _manifests(rng: random.Random) -> bytes:
    documents = []
    for obj in rng.choices(list(manifests.OBJECTS.values()), k=rng.randint(1, 3)):
        message = bodies.message_of(obj)
        grown = objects.grown(rng, obj, message) if message else obj
        documents.append(objects.mutated(rng, grown) if rng.random() < 0.6 else grown)
    autoscaler = manifests.valid(
        rng.choice(("autoscaling/v2", "autoscaling/v1", "extensions/v1beta1")), "HorizontalPodAutoscaler"
    )
    documents.append(objects.mutated(rng, autoscaler))
    if rng.random() < 0.5:
        return b"\n".join(bodies.json_of(document) for document in documents[:1])
    try:
        return b"---\n".join(yaml_output.write(document, sort_keys=False) for document in documents)
    except Exception:  # wrong on purpose: there is no YAML of it
        return bodies.json_of(documents)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_file(command: tuple[str, ...]) -> None:
    """No traceback, whatever stands on standard input."""
    make = _recording if command[0] in ("replay", "explain") else _manifests

    @budget.of()
    @given(budget.SEEDS)
    def run(seed: int) -> None:
        rng = random.Random(f"{command} {seed}")
        text = make(rng) if rng.random() < 0.9 else rng.choice(bodies.GARBAGE)
        text = bodies.damaged(rng, text) if rng.random() < 0.15 else text
        if rng.random() < 0.05:
            text = gzip.compress(text)[: rng.choice((20, 2000))]
        result = CliRunner().invoke(cli, [*command], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), (result.exc_info, text[:3000])
        assert result.exit_code in (0, 1, 2)
        assert result.exit_code != 2 or result.stderr.strip(), text[:3000]

    run()
