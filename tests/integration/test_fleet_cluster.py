"""A fleet on real Dask processes: a worker is killed, a run is interrupted and goes on, a scheduler is not there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dask
import polars
import pytest
from distributed import Client, LocalCluster

from podscaler.base.errors import UsageError
from podscaler.simulation.fleet import candidate_rows, partition_runs, result_files, synthetic
from podscaler.simulation.fleet.cluster import ClusterRequest
from podscaler.simulation.fleet.partition_runs import FleetProgress, FleetRun
from podscaler.simulation.fleet.trials import FleetTrials

TRIALS = FleetTrials(changes=("metrics[0].target.averageUtilization=40", "minReplicas=3"))
FLEET = synthetic.partitions(60, minutes=60, size=6)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Two workers, started as `dask scheduler` and `dask worker` would be."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def expected() -> polars.DataFrame:
    """The rows of the fleet, computed here."""
    rows = [row for part in FLEET for each in part.autoscalers() for row in candidate_rows.rows(each, TRIALS)]
    return result_files.frame_of(rows).sort("autoscaler", "candidate")


def fleet_run(folder: Path) -> FleetRun:
    """The run of the fleet."""
    return FleetRun(partitions=FLEET, make_trial=TRIALS, description=TRIALS.description, folder=folder)


def found(folder: Path) -> polars.DataFrame:
    """All rows that were written."""
    return polars.read_parquet(folder / result_files.FOLDER / "*.parquet").sort("autoscaler", "candidate")


class Interrupted(Exception):
    """Ends a run from its progress."""


def test_a_killed_worker_loses_nothing(scheduler: str, expected: polars.DataFrame, tmp_path: Path):
    """Its partitions are computed by others, and each file has the same rows."""
    with Client(scheduler, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())

    def kill_one(progress: FleetProgress) -> None:
        if progress.done == 2:
            os.kill(pids[0], signal.SIGKILL)

    progress = partition_runs.run(fleet_run(tmp_path), ClusterRequest(scheduler=scheduler), kill_one)
    assert (progress.done, progress.autoscalers) == (10, 60)
    assert found(tmp_path).equals(expected)


def test_an_interrupted_run_goes_on(scheduler: str, expected: polars.DataFrame, tmp_path: Path):
    """What was written is kept; the rest is computed."""

    def interrupt(progress: FleetProgress) -> None:
        if progress.done == 4:
            raise Interrupted

    on = ClusterRequest(scheduler=scheduler)
    with pytest.raises(Interrupted):
        partition_runs.run(fleet_run(tmp_path), on, interrupt)
    written = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("results/*.parquet")}
    assert len(written) == 4
    progress = partition_runs.run(fleet_run(tmp_path), on, lambda _: None)
    assert (progress.kept, progress.done, progress.autoscalers) == (4, 10, 36)
    assert {name: (tmp_path / "results" / name).stat().st_mtime_ns for name in written} == written
    assert found(tmp_path).equals(expected)


def test_a_finished_run_needs_no_cluster(scheduler: str, tmp_path: Path):
    """Nor do other trials keep what is there."""
    partition_runs.run(fleet_run(tmp_path), ClusterRequest(scheduler=scheduler), lambda _: None)
    nobody = ClusterRequest(scheduler="tcp://127.0.0.1:1", connect_s=0.5)
    assert partition_runs.run(fleet_run(tmp_path), nobody, lambda _: None).kept == 10
    other = FleetRun(partitions=FLEET, make_trial=TRIALS, description="other", folder=tmp_path)
    with pytest.raises(UsageError):
        partition_runs.run(other, nobody, lambda _: None)


def test_a_local_cluster(expected: polars.DataFrame, tmp_path: Path):
    """Processes of its own, which end with it."""
    partition_runs.run(fleet_run(tmp_path), ClusterRequest(workers=2), lambda _: None)
    assert found(tmp_path).equals(expected)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("tcp://127.0.0.1:1", id="nobody listens"),
        pytest.param("nonsense", id="no address"),
        pytest.param("quic://127.0.0.1:1", id="no such protocol"),
    ],
)
def test_a_scheduler_that_cannot_be_reached(address: str, tmp_path: Path):
    """One sentence."""
    with pytest.raises(UsageError, match=r"the Dask scheduler .* cannot be reached") as error:
        partition_runs.run(fleet_run(tmp_path), ClusterRequest(scheduler=address, connect_s=0.5), lambda _: None)
    assert "\n" not in str(error.value)


def test_certificates_that_are_not_configured(tmp_path: Path):
    """The sentence names the settings of Dask."""
    with pytest.raises(UsageError, match=r"tls://127.0.0.1:1 needs certificates: set distributed\.comm\.tls\.ca-file"):
        partition_runs.run(fleet_run(tmp_path), ClusterRequest(scheduler="tls://127.0.0.1:1"), lambda _: None)


def test_certificates_that_cannot_be_read(tmp_path: Path):
    """A file that is not there."""
    names = ("ca-file", "client.cert", "client.key")
    missing = {f"distributed.comm.tls.{name}": str(tmp_path / "none") for name in names}
    with dask.config.set(missing), pytest.raises(UsageError, match="certificates of Dask's configuration"):
        partition_runs.run(fleet_run(tmp_path), ClusterRequest(scheduler="tls://127.0.0.1:1"), lambda _: None)
