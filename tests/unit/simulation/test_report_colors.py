"""The contrast of the colours of reports, in light and in dark (WCAG 2.2, 1.4.3 and 1.4.11)."""

import re
from importlib import resources

import pytest

CSS = (resources.files("podscaler.simulation.report") / "static" / "report.css").read_text(encoding="utf-8")
LINES = ("blue", "orange", "green", "purple", "red", "teal", "pink", "gray")


def themes() -> dict[str, dict[str, str]]:
    """The colours by name, of the light and of the dark theme."""
    blocks = re.findall(r'(:root(?:\[data-theme="dark"\])?) \{(.*?)\}', CSS, re.DOTALL)
    found = {selector: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", body)) for selector, body in blocks}
    return {"light": found[":root"], "dark": found[':root[data-theme="dark"]']}


def luminance(color: str) -> float:
    """The relative luminance of `#rrggbb`, as WCAG defines it."""
    parts = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "muted"])
@pytest.mark.parametrize("background", ["page", "surface", "selection"])
def test_text(theme: str, text: str, background: str) -> None:
    """Text has a contrast of at least 4.5."""
    colors = themes()[theme]
    assert contrast(colors[text], colors[background]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("line", [*LINES, "border"])
def test_lines_and_marks(theme: str, line: str) -> None:
    """Lines, marks and borders have a contrast of at least 3."""
    colors = themes()[theme]
    assert contrast(colors[line], colors["page"]) >= 3


def test_both_dark_themes_are_equal() -> None:
    """The theme of the system and that of the switch have the same colours."""
    bodies = re.findall(r':root(?::not\(\[data-theme="light"\]\)|\[data-theme="dark"\]) \{(.*?)\}', CSS, re.DOTALL)
    one, other = (sorted(re.findall(r"--[\w-]+: #[0-9a-f]{6};", body)) for body in bodies)
    assert one == other
