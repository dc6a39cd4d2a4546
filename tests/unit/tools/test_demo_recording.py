"""The recording of the demo in the README: what the picture shows at each instant, and that it is safe to embed."""

import re
from pathlib import Path
from xml.etree import ElementTree

import demo_recording
import pytest
from demo_recording import COLUMNS, ROWS, PrintedLine

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Path(__file__).parents[3] / "docs" / "images" / "demo.svg"


def texts(svg: str) -> list[str]:
    """The lines of the picture."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def shifts_px(svg: str) -> list[int]:
    """How far the lines are moved at each step of the animation."""
    play = svg.partition("@keyframes play {")[2].partition("\n}")[0]
    return [int(each) for each in re.findall(r"translateY\((-?\d+)px\)", play)]


def test_lines_are_text_and_cut_at_the_width() -> None:
    """Markup in the output is shown, not read; long lines end with dots."""
    svg = demo_recording.svg([PrintedLine(1.0, "<b>&</b>"), PrintedLine(2.0, "x" * (COLUMNS + 1))])
    assert texts(svg) == ["$ podscaler demo", "<b>&</b>", "x" * (COLUMNS - 3) + "..."]


def test_bars_of_pods_are_coloured() -> None:
    """The bar is a part of its own in the line, which stays whole."""
    svg = demo_recording.svg([PrintedLine(1.0, "   8 s   load 10.0/s   cpu  192%   pods  4  ##..")])
    assert "##..</tspan></text>" in svg
    assert texts(svg)[1] == "   8 s   load 10.0/s   cpu  192%   pods  4  ##.."


def test_a_full_screen_moves_up_by_a_line() -> None:
    """The command and the first lines fill the screen; each later line moves all by its height."""
    svg = demo_recording.svg([PrintedLine(float(second), str(second)) for second in range(1, ROWS + 2)])
    assert shifts_px(svg) == [0] * ROWS + [-demo_recording.LINE_PX, -2 * demo_recording.LINE_PX]
    assert svg.count("@keyframes line") == ROWS - 1


def test_the_demo_that_fails_is_not_drawn(tmp_path: Path) -> None:
    """The status of the command is in the message."""
    failing = tmp_path / "podscaler"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o700)
    with pytest.raises(RuntimeError, match="status 3"):
        demo_recording.record(failing)


def test_the_picture_of_the_readme() -> None:
    """It shows a scale-up and a scale-down of a demo that succeeded, and needs nothing but itself."""
    svg = PICTURE.read_text(encoding="utf-8")
    shown = texts(svg)
    assert [each for each in shown if "=> 1 pods" in each]
    assert [each for each in shown if "above target" in each]
    assert "It scaled up under load and down again without it." in shown
    assert not re.search(r"<script|href=|url\((?!#)|@import", svg)
