"""Defines the flags of a fleet's backtest, and parses them.

Called by `podscaler.cli.backtest.backtest` and `podscaler.cli.fleet.fleet_run`. A new flag: an option in `options`, an
attribute of FleetFlags, and its name in `_FLEET_FLAGS` of the former.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from podscaler.base.errors import UsageError

FORMS = ("table", "json")
DEFAULT_WORKERS = 2
DEFAULT_WORKER_MEMORY = "1GiB"
DAY_MINUTES = 1440

_FLAG_BY_PARAMETER = {"files": "--with", "queries": "--query"}
"""The flags whose parameter has another name."""

Command = TypeVar("Command", bound=Callable[..., Any])


class FleetFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a backtest of a fleet.

    Attributes:
        recordings: of one controller, in the order of time.
        synthetic: the number of autoscalers of a generated fleet, in place of recordings; 0: recordings.
        synthetic_minutes: the length of its load.
        out: the folder of the results.
        workers: processes of a local cluster.
        memory: of each of them, such as `1GiB`.
        scheduler: the address of a running Dask scheduler; empty if a local cluster is started.
        vary: `FIELD=VALUE,VALUE...`, a candidate for each value.
        assignments: of `--set`, which together make one candidate.
        fixed: counts of pods, a candidate each.
        has_knative, has_hindsight: whether these candidates are compared.
        slo_ms, capacity_milli, cpu_limit_milli, from_ns, to_ns: as of `podscaler backtest`; None: not stated.
        form: of the summary, one of FORMS.
    """

    recordings: Sequence[Path] = ()
    synthetic: int = 0
    synthetic_minutes: int = DAY_MINUTES
    out: Path
    workers: int = DEFAULT_WORKERS
    memory: str = DEFAULT_WORKER_MEMORY
    scheduler: str = ""
    vary: Sequence[str] = ()
    assignments: Sequence[str] = ()
    fixed: Sequence[int] = ()
    has_knative: bool = False
    has_hindsight: bool = False
    slo_ms: float | None = None
    capacity_milli: int | None = None
    cpu_limit_milli: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    form: str = "table"


def options(command: Command) -> Command:
    """Add the flags that only a fleet has to a command."""
    for option in reversed(
        (
            click.option("--fleet", is_flag=True, help="all autoscalers of the recordings (docs/backtest.md, Fleets)"),
            click.option("--out", metavar="DIR", help="where a fleet's results are kept; a second run goes on there"),
            click.option("--workers", type=click.IntRange(1, 1024), help="processes for a fleet [default: 2]"),
            click.option("--worker-memory", metavar="SIZE", help="of each process [default: 1GiB]"),
            click.option("--scheduler", metavar="ADDRESS", help="a running Dask scheduler, as tcp://dask:8786"),
            click.option("--vary", multiple=True, metavar="FIELD=V,V...", help="a candidate for each value (fleet)"),
            click.option("--synthetic", type=click.IntRange(min=1), metavar="N", help="a made fleet, for a trial"),
        )
    ):
        command = option(command)
    return command


def flag(name: str) -> str:
    """The flag of a parameter (click's name) for messages: `--worker-memory` of `worker_memory`."""
    return _FLAG_BY_PARAMETER.get(name, f"--{name.replace('_', '-')}")


def changes(flags: FleetFlags) -> tuple[str, ...]:
    """The `FIELD=VALUE,...` of each candidate that changes fields, in the order of the flags. Raises UsageError."""
    candidate_changes = []
    for variation in flags.vary:
        field, equals, values_text = variation.partition("=")
        field_values = [field_value.strip() for field_value in values_text.split(",") if field_value.strip()]
        if not field.strip() or not equals or not field_values:
            raise UsageError(f"--vary {variation} is not FIELD=VALUE,VALUE... such as minReplicas=2,4")
        candidate_changes += [f"{field.strip()}={field_value}" for field_value in field_values]
    if flags.assignments:
        candidate_changes.append(",".join(flags.assignments))
    repeated = {change for change in candidate_changes if candidate_changes.count(change) > 1}
    if repeated:
        raise UsageError(f"the candidate {min(repeated)} is stated twice")
    return tuple(candidate_changes)
