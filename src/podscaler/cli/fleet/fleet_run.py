"""Runs the backtest of a fleet: divides recordings, computes what is missing, and prints the summary.

Called by `podscaler.cli.backtest.backtest`. `podscaler.simulation.fleet` computes (a new kind of candidate is an
attribute of its FleetTrials); this module reads files and prints.
"""

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podscaler.base.errors import UsageError
from podscaler.cli.commands import replay
from podscaler.cli.fleet import fleet_flags, fleet_output
from podscaler.cli.fleet.fleet_flags import FleetFlags

if TYPE_CHECKING:
    from podscaler.simulation.fleet.autoscalers import Partition

_LOCK_FILE = ".lock"


def run(flags: FleetFlags) -> None:
    """Compute what is missing in the output folder, and print the summary. Raises UsageError."""
    try:
        import distributed  # noqa: F401 - whether the extra is there
        import polars  # noqa: F401 - as above
    except ImportError:
        raise UsageError("a fleet needs the extra simulation: pip install 'podscaler[simulation]'") from None
    if flags.form not in fleet_flags.FORMS:
        raise UsageError(f"the summary of a fleet has the forms {' and '.join(fleet_flags.FORMS)}")
    if bool(flags.recordings) == bool(flags.synthetic):
        raise UsageError("a fleet needs either recordings or --synthetic N")
    if flags.scheduler and not flags.scheduler.partition("://")[2]:
        raise UsageError(f"--scheduler {flags.scheduler} is not an address such as tcp://dask-scheduler:8786")
    with _locked(flags.out):
        _run_partitions(flags)


def _run_partitions(flags: FleetFlags) -> None:
    """Divide the recordings, run what was not run before, and print the summary."""
    from podscaler.simulation.fleet import partition_runs, result_files, summary
    from podscaler.simulation.fleet.cluster import ClusterRequest
    from podscaler.simulation.fleet.partition_runs import FleetRun
    from podscaler.simulation.fleet.trials import PRESENT, FleetTrials

    trials = FleetTrials(
        changes=fleet_flags.changes(flags),
        fixed=tuple(flags.fixed),
        has_knative=flags.has_knative,
        has_hindsight=flags.has_hindsight,
        slo_ms=flags.slo_ms,
        capacity_milli=flags.capacity_milli,
    )
    partitions = _read_partitions(flags)
    fleet = FleetRun(partitions=partitions, make_trial=trials, description=trials.description, folder=flags.out)
    cluster_request = ClusterRequest(workers=flags.workers, memory=flags.memory, scheduler=flags.scheduler)
    partition_runs.run(fleet, cluster_request, fleet_output.progress_printer())
    fleet_summary = summary.summarize(flags.out, [partition.name for partition in partitions], PRESENT)
    click.echo(fleet_output.text(fleet_summary, flags.form, str(flags.out / result_files.FOLDER)), nl=False)


def _read_partitions(flags: FleetFlags) -> "Sequence[Partition]":
    """The partitions of the recordings, as files of the output folder, or synthetic ones. Raises UsageError."""
    from podscaler.simulation.evaluation.recording_scenario import RecordedSelection
    from podscaler.simulation.fleet import recorded_partitions, splitting, synthetic

    if flags.synthetic:
        return synthetic.partitions(flags.synthetic, minutes=flags.synthetic_minutes)
    if replay.STANDARD_STREAM in map(str, flags.recordings):
        raise UsageError("a fleet is read from files, since an interrupted run reads them again")
    manifest = splitting.split(flags.recordings, flags.out, _read_lines)
    if not manifest.parts:
        raise UsageError(f"{flags.recordings[0]} has no sync")
    selection = RecordedSelection(from_ns=flags.from_ns, to_ns=flags.to_ns, cpu_limit_milli=flags.cpu_limit_milli)
    return recorded_partitions.of_manifest(manifest, flags.out, selection)


def _read_lines(path: Path) -> Iterable[bytes]:
    with replay.open_input(str(path)) as file:
        yield from replay.read_lines(file)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder, and hold its lock. Raises UsageError if another run has it, or for OSErrors of the block."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK_FILE).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another run writes to {folder}") from None
            yield
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None
