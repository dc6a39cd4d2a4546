"""Configures the log on stderr: lines of text, or one JSON object a line.

Long-running commands (`podscaler.cli.commands.controller`, `podscaler.cli.up.up` and others) have the flags
`log_options` and call `configure` once. Invariants: a record is one line of JSON, whatever its text contains; a field
of a record never replaces `ts`, `level`, `logger` or `msg`. A new field of all records: an entry of `standard`.

Source: the JSON form of Kubernetes' component-base (`ts`, `msg`, further fields beside them), with the time as text.
"""

import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import click

from podscaler.cli.options.flags import flag_group

GetContextFields = Callable[[], Mapping[str, object]]
"""Returns the fields of the running code, such as `{"namespace": "shop", "autoscaler": "web"}` during its sync."""

FORMATS = ("text", "json")
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

log_options = flag_group(
    click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="format of the log on stderr: lines of text, or JSON with fields",
    ),
    click.option("-v", "--verbose", count=True, help="log more on stderr; twice: everything"),
)
"""Puts the flags `log_format` and `verbose` on a command; give both to `configure`."""
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that every `logging.LogRecord` has; all others come from `extra` and become fields."""


def configure(
    log_format: str, verbose: int, *, base_level: int = logging.INFO, get_fields: GetContextFields = dict
) -> None:
    """Log to stderr.

    Args:
        log_format: one of FORMATS.
        verbose: how often `-v` was given: each lowers the level by a step (INFO to DEBUG, WARNING to INFO), down to
            DEBUG.
        base_level: the level without `-v`.
        get_fields: returns the fields of the running code, which are added to each JSON record.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter(get_fields) if log_format == "json" else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(handlers=[handler], level=max(logging.DEBUG, base_level - 10 * verbose))


class JSONFormatter(logging.Formatter):
    """A record as one JSON object: `ts`, `level`, `logger`, `msg`, fields, and for exceptions `error` and `stack`.

    Args:
        get_fields: as in `configure`; fields of the record itself take precedence.
    """

    def __init__(self, get_fields: GetContextFields = dict) -> None:
        super().__init__()
        self._get_fields = get_fields

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        standard: dict[str, Any] = {
            "ts": _timestamp_text(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        extra = {name: field for name, field in vars(record).items() if name not in _STANDARD_ATTRIBUTES}
        fields = {**self._get_fields(), **extra}
        line = standard | {name: field for name, field in fields.items() if name not in standard}
        _, exception, _ = record.exc_info or (None, None, None)
        if exception is not None:
            line.setdefault("error", str(exception))  # a field of that name says more
            line.setdefault("stack", "".join(traceback.format_exception(exception)))
        return json.dumps(line, ensure_ascii=False, default=str)


def _timestamp_text(created_s: float) -> str:
    return datetime.fromtimestamp(created_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
