"""Writes docs/images/top.svg: the list of `podscaler top` with stated autoscalers."""

import asyncio
import re
import sys
from pathlib import Path

from podscaler.cli.top.top_app import TopApp
from podscaler.observe.views import MetricView
from podscaler.testing import views
from podscaler.testing.clock import VirtualClock
from podscaler.testing.views import ScriptedViews

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "top.svg"
COLUMNS, ROWS = 150, 16

LISTED = [
    views.row("shop", "web", desired=6, state="ScalingUp", sparkline=(2, 2, 3, 3, 4, 4)),
    views.row(
        "shop",
        "checkout",
        replicas=20,
        desired=27,
        ready=19,
        max=20,
        state="AtMaximum",
        severity=2,
        sparkline=(6, 9, 14, 20, 20),
        metrics=(MetricView("cpu", "Resource", 94, 70, "percent", "94%/70%"),),
    ),
    views.row(
        "jobs", "queue", replicas=0, desired=None, ready=0, state="NoMetrics", severity=3, sparkline=(4, 2, 0, 0)
    ),
    views.row("search", "index", replicas=7, desired=7, ready=7, sparkline=(5, 6, 7, 7, 7, 7)),
]


async def draw() -> str:
    """The picture as SVG."""
    clock = VirtualClock(views.START_MS * 1_000_000)
    app = TopApp(ScriptedViews(LISTED), cluster="production", clock=clock)
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await pilot.pause()
        picture = app.export_screenshot(title="podscaler top", simplify=True)
    return re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # fonts of this machine, none of a server


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(asyncio.run(draw()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
