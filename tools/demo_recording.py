"""Records `podscaler demo` as docs/images/demo.svg, a terminal that plays what was printed.

The lines and their instants are those of one real demo, which takes about 70 s; the picture plays them SPEEDUP times as
fast and begins again. It is one SVG without scripts: a browser moves the lines by CSS, and readers who asked their
system for less motion see the last lines only.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
COMMAND = "podscaler demo"
DEMO_TIMEOUT_S = 300.0

SPEEDUP = 6.0
HOLD_S = 4.0
"""How long the last lines stay before the picture begins again."""
COLUMNS, ROWS = 100, 18
CHARACTER_PX, LINE_PX, MARGIN_PX, BAR_PX = 7.83, 19, 14, 30
BACKGROUND, FRAME, TEXT, DIM, ACCENT, GOOD = "#0d1522", "#1d2a3f", "#d7e0ee", "#8494ab", "#f0a35e", "#7ed38d"


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """One line of the demo's output, and the seconds from the start until it was printed."""

    at_s: float
    text: str


def record(executable: Path) -> list[PrintedLine]:
    """The lines that a demo prints. Raises RuntimeError where it fails or takes longer than DEMO_TIMEOUT_S."""
    start_s = time.monotonic()
    lines = []
    with subprocess.Popen([executable, "demo"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            lines.append(PrintedLine(time.monotonic() - start_s, text.rstrip("\n")))
            if lines[-1].at_s > DEMO_TIMEOUT_S:
                process.terminate()
    if process.returncode:
        raise RuntimeError(f"the demo ended with status {process.returncode}")
    return lines


def svg(lines: Sequence[PrintedLine]) -> str:
    """The picture that plays the lines, which are cut at COLUMNS characters."""
    width, height = round(COLUMNS * CHARACTER_PX) + 2 * MARGIN_PX, ROWS * LINE_PX + 2 * MARGIN_PX + BAR_PX
    length_s = lines[-1].at_s / SPEEDUP + HOLD_S
    rows = [PrintedLine(0.0, f"$ {COMMAND}"), *lines]
    shown = f'<rect y="{BAR_PX + MARGIN_PX - 3}" width="{width}" height="{ROWS * LINE_PX}"/>'
    dots = "".join(f'<circle cx="{18 + 18 * index}" cy="15" r="5" fill="{DIM}"/>' for index in range(3))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
            f"<title>{COMMAND}: a web service under load is scaled up, and down again without it</title>",
            "<style>",
            *_style(rows, length_s),
            "</style>",
            f'<clipPath id="screen">{shown}</clipPath>',
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            f'<rect width="{width}" height="{BAR_PX}" rx="8" fill="{FRAME}"/>{dots}',
            '<g clip-path="url(#screen)"><g class="lines">',
            *[_text(row, each.text) for row, each in enumerate(rows)],
            "</g></g>",
            "</svg>\n",
        ]
    )


def _style(rows: Sequence[PrintedLine], length_s: float) -> Iterator[str]:
    """The animation: each line appears below the others at its instant; a full screen moves up by a line."""
    yield f".lines {{ animation: play {length_s:.2f}s step-end infinite; }}"
    yield "text { white-space: pre; }"
    yield "@keyframes play {"
    for row, each in enumerate(rows):
        yield f"{each.at_s / SPEEDUP / length_s:.3%} {{ transform: translateY({_top_px(row)}px); }}"
    yield "}"
    for row, each in enumerate(rows[1:ROWS], 1):
        hidden = f"{each.at_s / SPEEDUP / length_s:.3%}"
        yield f"@keyframes line{row} {{ 0% {{ opacity: 0; }} {hidden} {{ opacity: 1; }} }}"
        yield f".line{row} {{ animation: line{row} {length_s:.2f}s step-end infinite; }}"
    yield "@media (prefers-reduced-motion: reduce) {"
    yield f".lines {{ animation: none; transform: translateY({_top_px(len(rows) - 1)}px); }}"
    yield "text { animation: none !important; }"
    yield "}"


def _top_px(last_row: int) -> int:
    """How far the lines are moved when `last_row` is the last one that is shown."""
    return -LINE_PX * max(last_row + 1 - ROWS, 0)


def _text(row: int, text: str) -> str:
    y = BAR_PX + MARGIN_PX + LINE_PX * row + 12
    marked = f' class="line{row}"' if 0 < row < ROWS else ""
    cut = text if len(text) <= COLUMNS else f"{text[: COLUMNS - 3]}..."
    words, bar = cut.rstrip("#."), cut[len(cut.rstrip("#.")) :] if "pods" in cut else ""
    drawn = f'{escape(words)}<tspan fill="{GOOD}">{bar}</tspan>' if bar.startswith("#") else escape(cut)
    return f'<text x="{MARGIN_PX}" y="{y}" fill="{_color(text)}"{marked}>{drawn}</text>'


def _color(text: str) -> str:
    if "=> " in text:
        return ACCENT
    if ".. " in text:
        return DIM
    return GOOD if text.startswith(("It scaled", "$")) else TEXT


def main() -> int:
    """Run the demo and write the picture."""
    PICTURE.write_text(svg(record(Path(sys.executable).with_name("podscaler"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
