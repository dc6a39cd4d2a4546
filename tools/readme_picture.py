"""Draws docs/picture.svg, the picture of the README: `python tools/readme_picture.py`.

A test compares the file with what this prints. Units are pixels.
"""

from pathlib import Path
from xml.sax.saxutils import escape

PICTURE = Path(__file__).parents[1] / "docs" / "picture.svg"
WIDTH, HEIGHT = 820, 344
INK, PALE, WHITE = "#24406b", "#eef3fb", "#ffffff"
ACCENT = "#d9822b"


def text(x: int, y: int, words: str, *, size: int = 13, bold: bool = False, color: str = INK) -> str:
    """A line of text, centred at x."""
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}"{weight} fill="{color}" text-anchor="middle">{escape(words)}</text>'
    )


def box(x: int, y: int, width: int, height: int, *lines: str, fill: str = WHITE) -> str:
    """A rounded box; the first line is bold, all are at its top."""
    middle = x + width // 2
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{INK}"/>'
    words = [text(middle, y + 22 + 18 * row, line, bold=row == 0) for row, line in enumerate(lines)]
    return "\n".join([shape, *words])


def arrow(x1: int, y1: int, x2: int, y2: int, label: str = "", *, at: tuple[int, int] = (0, 0)) -> str:
    """An arrow, and its label in the middle, moved by `at`."""
    line = f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{ACCENT}" stroke-width="2" marker-end="url(#head)"/>'
    words = text((x1 + x2) // 2 + at[0], (y1 + y2) // 2 + at[1], label, size=12, color=ACCENT)
    return f"{line}\n{words}" if label else line


def pods(x: int, y: int) -> str:
    """Bars that stand for processes and the CPU they use."""
    heights = (24, 30, 20, 27)
    bars = [
        f'<rect x="{x + 34 * index}" y="{y + 32 - height}" width="22" height="{height}" rx="3" fill="{ACCENT}"/>'
        for index, height in enumerate(heights)
    ]
    return "\n".join(bars)


def picture() -> str:
    """The whole file."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{ACCENT}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{WHITE}"/>',
        box(12, 74, 120, 64, "kubectl", "helm, clients"),
        box(164, 12, 436, 242, "podscaler up: one process, one machine", fill=PALE),
        box(184, 54, 168, 100, "API server", "and controllers of", "Deployments,", "Services, ..."),
        box(420, 54, 160, 100, "autoscaler", "decides as", "Kubernetes v1.37"),
        box(184, 190, 336, 52),
        text(268, 221, "pods: real processes", bold=True),
        pods(366, 200),
        box(632, 54, 176, 100, "podscaler controller", "the same autoscaler", "in any cluster"),
        box(
            164,
            284,
            644,
            48,
            "podscaler explain, lint, replay",
            "why so many replicas; what is wrong; what if",
            fill=PALE,
        ),
        arrow(132, 106, 182, 106),
        arrow(420, 92, 354, 92, "replicas", at=(0, -7)),
        arrow(230, 154, 230, 188, "start, probe, end", at=(56, 3)),
        arrow(460, 190, 460, 156, "CPU, memory", at=(-44, 3)),
        arrow(550, 154, 550, 282),
        arrow(720, 154, 720, 282, "every step as data", at=(-62, 0)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
