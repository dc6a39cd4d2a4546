"""Defines the flags that say where the load of a backtest comes from, and parses them.

Shared by `podscaler.cli.backtest.backtest` and `podscaler.cli.tune.tune`, so that both take the same sources. A new
flag: an option in `options`, an attribute of `SourceRequest`, and its value in `source_request`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from podscaler.api.machinery import quantity
from podscaler.base.errors import UsageError
from podscaler.cli.backtest.load_sources import SourceRequest
from podscaler.simulation.files import file_fields
from podscaler.simulation.files.loads import RangeRequest

Command = TypeVar("Command", bound=Callable[..., Any])


def options(command: Command) -> Command:
    """A decorator that adds the flags of a source to a command; give their values to `source_request`."""
    for option in reversed(
        (
            click.option("--hpa", default="", metavar="NAMESPACE/NAME", help="the autoscaler, if SOURCE has several"),
            click.option(
                "--from", "begin", default="", metavar="TIME", help="the first instant that counts [default: the start]"
            ),
            click.option("--to", "end", default="", metavar="TIME", help="the last one [default: the end]"),
            click.option(
                "--capacity", metavar="CPU", help="what one pod can carry [default: its CPU limit, or else its request]"
            ),
            click.option("--cpu-limit", metavar="CPU", help="of one pod, in place of that in the recording"),
            click.option("--present", metavar="FILE", help="the manifest of the present autoscaler (Prometheus)"),
            click.option("--query", "queries", multiple=True, metavar="NAME=PROMQL", help="another query (Prometheus)"),
            click.option(
                "--step", default="60s", show_default=True, metavar="DURATION", help="between two values (Prometheus)"
            ),
            click.option("--token-file", metavar="FILE", help="a bearer token (Prometheus)"),
            click.option("--ca-file", metavar="FILE", help="authorities of the certificate (Prometheus)"),
        )
    ):
        command = option(command)
    return command


def source_request(source: str, flags: Mapping[str, Any]) -> SourceRequest:
    """The request to a source that the flags mean. Raises UsageError.

    Args:
        flags: the values of `options`, as click passes them.
    """
    return SourceRequest(
        source=source,
        autoscaler=flags["hpa"],
        begin=flags["begin"],
        end=flags["end"],
        range_query=_range_query,
        present=_path(flags["present"]),
        queries=flags["queries"],
        step_s=parse_duration_ms(flags["step"], "--step", "60s") / 1000,
        token_file=_path(flags["token_file"]),
        ca_file=_path(flags["ca_file"]),
        cpu_limit_milli=find_cpu_milli(flags["cpu_limit"], "--cpu-limit"),
    )


_MEMORY_UNITS = "ikMGTPE"
"""The last letters of units that are meant for memory, which a quantity accepts but no amount of CPU has."""


def find_cpu_milli(flag_value: str | None, flag: str) -> int | None:
    """An amount of CPU in thousandths of a core; None if the flag is not given. Raises UsageError."""
    if flag_value is None:
        return None
    try:
        milli = quantity.parse(flag_value).milli_value()
    except ValueError:
        milli = 0  # rejected below
    if milli <= 0 or flag_value[-1] in _MEMORY_UNITS:
        raise UsageError(f"{flag} {flag_value} is not an amount of CPU such as 500m")
    return milli


def find_duration_ms(flag_value: str | None, flag: str, example: str) -> float | None:
    """A duration above 0; None if the flag is not given. Raises UsageError."""
    return None if flag_value is None else parse_duration_ms(flag_value, flag, example)


def parse_duration_ms(flag_value: str, flag: str, example: str) -> float:
    """A duration above 0; `flag` and `example` are for the error. Raises UsageError."""
    try:
        parsed_ms = file_fields.parse_duration_ms(flag_value)
    except ValueError:
        parsed_ms = 0  # rejected below
    if parsed_ms <= 0:
        raise UsageError(f"{flag} {flag_value} is not a duration such as {example}")
    return float(parsed_ms)


def _path(flag_value: str | None) -> Path | None:
    return None if flag_value is None else Path(flag_value)


def _range_query(request: RangeRequest) -> Sequence[tuple[float, str]]:
    """As `range_queries.read`, which `podscaler.simulation` gets as a function as it imports no client."""
    from podscaler.cli.simulate import range_queries  # the client takes a while to import

    return range_queries.read(request)
