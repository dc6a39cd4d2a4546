"""Writes a report as one HTML file that needs no server and no network.

Called by `podscaler simulate`, `backtest` and `tune`. The page has the content as JSON, and a script that draws it;
without scripts it shows the tables.

Invariants: the content cannot become markup or script: JSON and HTML are escaped, and the script sets texts only. The
page's policy (Content-Security-Policy) allows its own script and style, by their hashes, and no request. Equal content
gives equal pages.
"""

import base64
import hashlib
import os
from collections.abc import Iterator
from html import escape
from importlib import resources
from pathlib import Path

import msgspec

from podscaler.base.errors import UsageError
from podscaler.simulation.report import decimation
from podscaler.simulation.report.page_data import AutoscalerPart, ReportData, ReportTable, TimePlot

_STATIC_FOLDER = resources.files("podscaler.simulation.report") / "static"
_SCRIPT_PARTS = ("elements.js", "time_plots.js", "decisions.js", "report.js")
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""JSON with these needs no other escaping within a `script` element."""


def ensure_writable(path: Path) -> None:
    """Raise UsageError if `write` would fail, before the work that the report is about."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: {'it is a folder' if path.is_dir() else 'permission denied'}")


def write(path: Path, data: ReportData) -> None:
    """Write the page, or to a file named `.json` its content, which the dashboard shows.

    It takes the place of a file that is there; a reader never sees a part of it. Raises UsageError.
    """
    content = as_json(data).decode() if path.suffix == ".json" else html(data)
    temporary_path = path.with_name(f".{path.name}.part")
    try:
        temporary_path.write_text(content, encoding="utf-8")
        temporary_path.replace(path)
    except OSError as error:
        temporary_path.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def html(data: ReportData) -> str:
    """The page."""
    script, style = _page_script(), _style()
    policy = (
        f"default-src 'none'; script-src '{_csp_hash(script)}'; style-src '{_csp_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(data.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="report"></div>\n<noscript>\n{"".join(_html_without_script(data))}</noscript>\n'
        f'<script type="application/json" id="report-data">{_escaped_json(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def as_json(data: ReportData) -> bytes:
    """The content as the page's script reads it, with reduced plots."""
    return msgspec.json.encode(_with_reduced_plots(data))


def _escaped_json(data: ReportData) -> str:
    """The content as JSON that can stand within a `script` element."""
    return as_json(data).decode().translate(_ESCAPES)


def _with_reduced_plots(data: ReportData) -> ReportData:
    """The report with all plots reduced to what a browser draws quickly."""
    return msgspec.structs.replace(
        data,
        plots=_reduce_plots(data.plots),
        autoscalers=tuple([_reduce_part(autoscaler) for autoscaler in data.autoscalers]),
    )


def _reduce_part(part: AutoscalerPart) -> AutoscalerPart:
    return msgspec.structs.replace(part, plots=_reduce_plots(part.plots))


def _reduce_plots(plots: tuple[TimePlot, ...]) -> tuple[TimePlot, ...]:
    return tuple([decimation.reduce_plot(plot) for plot in plots])


def _html_without_script(data: ReportData) -> Iterator[str]:
    """The parts that need no script, as HTML."""
    yield f"<main>\n<h1>{escape(data.title)}</h1>\n"
    yield "<p>The plots need JavaScript, which this browser does not run.</p>\n"
    yield from (f"<p>{escape(note)}</p>\n" for note in data.notes)
    for table in data.tables:
        yield from _table_html(table)
    if data.expectations:
        rows = tuple(
            [(expectation.expected, expectation.failure or "as expected") for expectation in data.expectations]
        )
        yield from _table_html(ReportTable(title="Expectations", columns=("expected", "result"), rows=rows))
    yield "</main>\n"


def _table_html(table: ReportTable) -> Iterator[str]:
    """The HTML of a table; the first cell of each row is its heading."""
    yield f"<table>\n<caption>{escape(table.title)}</caption>\n<thead><tr>"
    yield from (f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    yield "</tr></thead>\n<tbody>\n"
    for row_heading, *cells in table.rows:
        cells_html = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<tr><th scope="row">{escape(row_heading)}</th>{cells_html}</tr>\n'
    yield "</tbody>\n</table>\n"


def script() -> str:
    """The script of the page without uPlot: its parts as one function, so that their names are no global names."""
    parts = "\n".join(_read_static(name) for name in _SCRIPT_PARTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _page_script() -> str:
    """uPlot, with its licence, then the script of the page."""
    return f"/* uPlot\n{_read_static('uPlot.LICENSE')}\n*/\n{_read_static('uPlot.iife.min.js')}\n{script()}"


def _style() -> str:
    return f"{_read_static('uPlot.min.css')}\n{_read_static('report.css')}"


def _read_static(name: str) -> str:
    return (_STATIC_FOLDER / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    """The hash of an inline script or style, as a source of a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
