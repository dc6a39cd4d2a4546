"""Writes docs/images/report.png, backtest.png and tune.png: the reports of examples, in light colours.

Needs Chromium (`apt-get install chromium`). Arguments name some of them; `tune` takes two minutes.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner
from playwright.sync_api import Page, ViewportSize, sync_playwright

from podscaler.cli.main import cli

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "simulation"
IMAGES = ROOT / "docs" / "images"


class Picture(NamedTuple):
    """One picture: the command without `--report`, what is at the top of the picture, and the picture's size."""

    name: str
    arguments: Sequence[str]
    top: str
    size: ViewportSize


DAY = str(EXAMPLES / "day-with-noise.yaml")
PICTURES = (
    Picture(
        "report",
        ["simulate", str(EXAMPLES / "slow-start.yaml")],
        "details.autoscaler",
        {"width": 1280, "height": 900},
    ),
    Picture("backtest", ["backtest", DAY, "--fixed", "6"], "h1", {"width": 1280, "height": 1000}),
    Picture(
        "tune",
        ["tune", DAY, "--slo", "under-amount<1%", "--trials", "300"],
        "h1",
        {"width": 1280, "height": 1300},
    ),
)

NAMES = [each.name for each in PICTURES]


def main() -> int:
    """Write the pictures. Exit status 2 without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium: apt-get install chromium", file=sys.stderr)
        return 2
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for picture in [each for each in PICTURES if each.name in (sys.argv[1:] or NAMES)]:
            path = Path(folder, f"{picture.name}.html")
            CliRunner().invoke(cli, [*picture.arguments, "--report", str(path)])
            page = browser.new_page(viewport=picture.size, color_scheme="light")
            page.goto(path.as_uri())
            _arrange(page, picture)
            page.screenshot(path=IMAGES / f"{picture.name}.png")
        browser.close()
    return 0


def _arrange(page: Page, picture: Picture) -> None:
    """Explain a decision, or select a candidate, and scroll to the top of the picture."""
    if picture.name == "report":
        page.locator("[role=option]").nth(1).click()
    if picture.name == "tune":
        page.locator(".scatter .canvas").focus()
        page.keyboard.press("ArrowRight")
    page.evaluate("top => window.scrollTo(0, document.querySelector(top).offsetTop - 60)", picture.top)
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)


if __name__ == "__main__":
    sys.exit(main())
