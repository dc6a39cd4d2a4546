"""Expressions that were changed at random are refused, fail or have a value; nothing else happens, and not for long."""

import json
import random
import re
from pathlib import Path

import pytest

from podscaler.api.cel.compile import programs
from podscaler.api.cel.values import types
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError, EvaluationError
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.crd import rule_types, rule_values, structural

RECORDED = Path(__file__).parents[1] / "conformance" / "recorded" / "rules.jsonl"
EXPRESSION = re.compile(r'"(?:rule|messageExpression)": ("(?:[^"\\]|\\.)*")')
WORD = re.compile(r"\w+|'[^']*'|[^\w\s]|\s+")
EXAMPLES = 500


@pytest.fixture(scope="module")
def captured() -> tuple[list[str], types.Type, object]:
    """The expressions of the captures, the type of the object that most of them are about, and that object."""
    text = RECORDED.read_text(encoding="utf-8")
    expressions = sorted({json.loads(each) for each in EXPRESSION.findall(text)})
    case = next(json.loads(line) for line in text.splitlines() if '"name": "value-macros"' in line)
    version = case["steps"][0]["request"]["body"]["spec"]["versions"][0]
    schema = structural.parse(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    own = rule_types.cel_type_of(schema, "selfType0")
    assert own is not None
    return expressions, own, rule_values.to_cel(case["steps"][1]["request"]["body"]["spec"], schema)


def _mutated(rng: random.Random, expressions: list[str]) -> str:
    words = WORD.findall(rng.choice(expressions)) or ["1"]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randrange(len(words))
        others = WORD.findall(rng.choice(expressions)) or ["2"]
        words[at : at + rng.randrange(2)] = rng.choice((others, [rng.choice(others)], [f"dyn({words[at]})"]))
    return "".join(words)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_expressions(captured: tuple[list[str], types.Type, object], seed: int) -> None:
    """Only the language's own errors come out of the compiler and of programs."""
    expressions, own, value = captured
    rng = random.Random(seed)
    for _ in range(EXAMPLES):
        source = _mutated(rng, expressions)
        try:
            program = programs.compiled(source, {"self": own, "oldSelf": own})
            program.run({"self": value, "oldSelf": value}, Budget())
        except (CompileError, EvaluationError, BudgetError):
            continue
