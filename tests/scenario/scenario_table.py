"""docs/scenarios.md, made from the worked examples: `python tests/scenario/scenario_table.py` writes it.

test_scenario_table.py compares it with what is there.
"""

import importlib
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType

from scenario_examples import SOURCES, Example, Timeline

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER.parents[1] / "docs" / "scenarios.md"

OPENING = """\
# Worked examples

Every example below is a test: what a document of Kubernetes (or about it) works out in numbers, run in virtual time on
the decision core that `podscaler controller`, `replay` and `explain` use. The driver is public,
`podscaler.testing.scenario`: an autoscaler, a target whose pods share a load and take a while to get ready, and one
meter for each metric.

A timeline names the second of each change, the replicas from then on, and the reason in the event. "cpu above target"
is short for `cpu resource utilization (percentage of request) above target`. Unless a row says otherwise the settings
are the defaults: a sync every 15 s beginning at second 0, a tolerance of 0.1, a downscale stabilization of 300 s. Tests
are in `tests/scenario/`; `python tests/scenario/scenario_table.py` writes this page, and a test keeps it in step.

| Source | What it is |
|---|---|
"""

DIFFERENCES = """\
## Where a document says otherwise

Some of these documents are old, translated, simplified or mistaken. Kubernetes v1.37 wins, and so do we.

| Source | It says | What holds | Test |
|---|---|---|---|
"""


def modules() -> list[ModuleType]:
    """The modules with examples, by name."""
    names = sorted(path.stem for path in FOLDER.glob("test_scenario_*.py") if path.stem != "test_scenario_table")
    return [importlib.import_module(name) for name in names]


def examples(module: ModuleType) -> Iterator[tuple[str, Example]]:
    """The examples of a module with the names of their tests, in order."""
    for name, test in vars(module).items():
        for example in getattr(test, "examples", ()):
            yield name, example


def document() -> str:
    """The whole page."""
    sources = "".join(f"| {name} | {title} |\n" for name, title in SOURCES.items())
    sections = "".join(_section(module) for module in modules())
    return f"{OPENING}{sources}{sections}\n{DIFFERENCES}{''.join(_differences())}"


def _section(module: ModuleType) -> str:
    title, _, _ = (module.__doc__ or "").partition("\n")
    lines = [
        f"\n## {title.rstrip('.')}\n",
        f"\nIn `{module.__name__}.py`.\n",
        "\n| Scenario | Source | Expected timeline | Test |\n|---|---|---|---|\n",
        *[_row(name, example) for name, example in examples(module)],
    ]
    return "".join(lines)


def _row(test: str, example: Example) -> str:
    return _cells(example.title, example.source, shown(example.timeline), f"`{test}`")


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def shown(timeline: Timeline) -> str:
    """A timeline as text: changes with the same reason together."""
    if not timeline:
        return "no change"
    return "; ".join(_run(reason, list(rows)) for reason, rows in groupby(timeline, key=lambda row: row[2]))


def _run(reason: str, rows: Timeline) -> str:
    changes = ", ".join(f"{at_s:g} s: {replicas}" for at_s, replicas, _ in rows)
    return f"{changes} ({_short(reason)})"


def _short(reason: str) -> str:
    return reason.replace("cpu resource utilization (percentage of request)", "cpu") or "no reason given"


def _differences() -> Iterator[str]:
    for module in modules():
        told = {example.differs: (name, example.source) for name, example in examples(module) if example.differs}
        for differs, (name, source) in told.items():
            said, holds = differs.split(" What holds: ")
            yield _cells(source, said, f"{holds[0].upper()}{holds[1:]}", f"`{name}`")


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT}\n")
