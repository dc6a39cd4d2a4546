"""The fleet mode of `podscaler backtest`: flags, progress, the summary, and its errors. Workers run in this process."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from distributed import Client, LocalCluster

import made_recordings as recordings
from podscaler.base.errors import UsageError
from podscaler.cli.fleet import fleet_flags, fleet_run
from podscaler.cli.fleet.fleet_flags import FleetFlags


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A worker in a thread."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            protocol="tcp",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster, set_as_default=False),
    ):
        yield cluster.scheduler_address


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Three autoscalers, of which one has no samples."""
    pods = [recordings.pod("web-0", limit="400m"), recordings.pod("web-1", limit="400m")]
    lines = recordings.lines(
        recordings.sync(
            index * 15,
            pods,
            recordings.usage(index * 15 - 5, {"web-0": 150, "web-1": 100}) if name != "idle" else None,
            autoscaler=recordings.hpa(name),
        )
        for index in range(20)
        for name in ("web", "api", "idle")
    )
    path = tmp_path / "fleet.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def run(flags: FleetFlags, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What is printed to standard output and standard error."""
    fleet_run.run(flags)
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_fleet_of_a_recording(recording: Path, tmp_path: Path, scheduler: str, capsys: pytest.CaptureFixture[str]):
    """Every candidate over all autoscalers; the one without samples is named, and the second run computes nothing."""
    flags = FleetFlags(
        recordings=[recording], out=tmp_path / "out", scheduler=scheduler, vary=("minReplicas=2,3",), form="json"
    )
    out, progress = run(flags, capsys)
    found = json.loads(out)
    assert [(row["candidate"], row["autoscalers"]) for row in found["candidates"]] == [
        ("present", 2),
        ("minReplicas=2", 2),
        ("minReplicas=3", 2),
    ]
    assert found["failed"] == 1
    assert "default/idle" in found["errors"][0]["error"]
    assert progress.splitlines()[-1].endswith("3 autoscalers in this run")
    again, progress = run(flags, capsys)
    assert again == out
    assert progress == "3 of 3 partitions (3 of an earlier run), 0 autoscalers in this run\n"


def test_the_table(tmp_path: Path, scheduler: str, capsys: pytest.CaptureFixture[str]):
    """A line for each candidate, and where the rows are."""
    flags = FleetFlags(synthetic=2, synthetic_minutes=30, out=tmp_path, scheduler=scheduler, fixed=(4,))
    heading, present, fixed, rows = run(flags, capsys)[0].splitlines()
    assert heading.split()[:3] == ["autoscalers", "pod-hours", "of"]
    assert [present.split()[:2], fixed.split()[:3]] == [["present", "2"], ["fixed", "4", "2"]]
    assert rows == f"The rows of every autoscaler: {tmp_path}/results/*.parquet"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({}, "either recordings or --synthetic N", id="nothing"),
        pytest.param({"synthetic": 1, "recordings": [Path("x")]}, "either recordings or --synthetic N", id="both"),
        pytest.param({"synthetic": 1, "form": "csv"}, "has the forms table and json", id="no such form"),
        pytest.param({"recordings": [Path("-")]}, "a fleet is read from files", id="standard input"),
        pytest.param({"recordings": [Path("/none")]}, "/none cannot be read", id="no file"),
        pytest.param({"synthetic": 1, "scheduler": "dask"}, "--scheduler dask is not an address", id="no address"),
        pytest.param(
            {"synthetic": 1, "vary": ["minReplicas"]}, "--vary minReplicas is not FIELD=VALUE", id="no values"
        ),
        pytest.param({"synthetic": 1, "vary": ["a=1,1"]}, "the candidate a=1 is stated twice", id="twice"),
    ],
)
def test_bad_flags(changed: dict[str, Any], sentence: str, tmp_path: Path):
    """One sentence, before anything is computed."""
    with pytest.raises(UsageError, match=sentence):
        fleet_run.run(msgspec.structs.replace(FleetFlags(out=tmp_path), **changed))


def test_two_runs_in_one_folder(tmp_path: Path):
    """The second one ends at once."""
    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run writes to"):
            fleet_run.run(FleetFlags(synthetic=1, out=tmp_path))


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    """A file has its place."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        fleet_run.run(FleetFlags(synthetic=1, out=tmp_path / "file"))


def test_candidates_of_flags():
    """A candidate for each value of --vary, and one with all of --set."""
    flags = FleetFlags(
        out=Path(), vary=("minReplicas=2, 3", "maxReplicas=9"), assignments=("minReplicas=5", "maxReplicas=6")
    )
    assert fleet_flags.changes(flags) == (
        "minReplicas=2",
        "minReplicas=3",
        "maxReplicas=9",
        "minReplicas=5,maxReplicas=6",
    )
