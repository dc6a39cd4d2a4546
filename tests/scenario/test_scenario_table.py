"""The table of worked examples, and the page that shows it."""

import pytest
import scenario_table
from scenario_examples import CPU, DOWN, Timeline


def test_document_is_in_step() -> None:
    """docs/scenarios.md is what the tests say (`python tests/scenario/scenario_table.py` writes it)."""
    assert scenario_table.DOCUMENT.read_text(encoding="utf-8") == scenario_table.document()


def test_titles_name_one_example() -> None:
    """No two examples of a test have the same title."""
    titles = [
        (module.__name__, name, example.title)
        for module in scenario_table.modules()
        for name, example in scenario_table.examples(module)
    ]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize(
    ("timeline", "text"),
    [
        ([], "no change"),
        (
            [(0, 4, CPU), (15, 7, CPU), (585, 1, DOWN)],
            "0 s: 4, 15 s: 7 (cpu above target); 585 s: 1 (All metrics below target)",
        ),
        ([(0.5, 1, "")], "0.5 s: 1 (no reason given)"),
    ],
)
def test_shown_timelines(timeline: Timeline, text: str) -> None:
    """Changes with one reason stand together."""
    assert scenario_table.shown(timeline) == text
