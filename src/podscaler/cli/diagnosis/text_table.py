"""Aligns rows of texts in columns, as kubectl does: three spaces between columns, no spaces at the ends of lines.

Called by `podscaler.cli.diagnosis.list_autoscalers`, `podscaler.cli.diagnosis.doctor` and
`podscaler.cli.diagnosis.timeline`.
"""

from collections.abc import Iterable, Sequence

GAP = "   "


def lines(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """One line for each row. All rows have the same number of cells; control characters become spaces."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def one_line(text: str) -> str:
    """The text without line breaks and control characters, which could change the terminal: each becomes a space."""
    return "".join(character if character.isprintable() else " " for character in text)
