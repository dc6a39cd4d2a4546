"""`podscaler backtest --fleet`: its flags, and those that only a single autoscaler has."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.cli.backtest import backtest
from podscaler.cli.fleet import fleet_run
from podscaler.cli.fleet.fleet_flags import FleetFlags
from podscaler.cli.main import cli


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[FleetFlags]:
    """What is run, in place of running it."""
    found: list[FleetFlags] = []
    monkeypatch.setattr(fleet_run, "run", found.append)
    return found


def test_flags_of_a_fleet(asked: list[FleetFlags]):
    """Those of a single autoscaler that mean the same, and its own."""
    text = (
        "a b --fleet --out DIR --workers 4 --scheduler tcp://dask:1 --vary minReplicas=2,3 --set maxReplicas=9 "
        "--fixed 6 --hindsight --capacity 500m --from 1970-01-01T00:00:01Z -o json"
    )
    CliRunner().invoke(backtest.command, text.split(), catch_exceptions=False)
    assert asked == [
        FleetFlags(
            recordings=[Path("a"), Path("b")],
            out=Path("DIR"),
            workers=4,
            scheduler="tcp://dask:1",
            vary=("minReplicas=2,3",),
            assignments=("maxReplicas=9",),
            fixed=(6,),
            has_hindsight=True,
            capacity_milli=500,
            from_ns=1_000_000_000,
            form="json",
        )
    ]


def test_knative_and_hindsight_are_asked_for_in_a_fleet(asked: list[FleetFlags]):
    """They run in the exact engine."""
    CliRunner().invoke(backtest.command, ["a", "--fleet", "--out", "DIR"], catch_exceptions=False)
    assert [(each.has_knative, each.has_hindsight) for each in asked] == [(False, False)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("a --fleet", "--fleet needs --out DIR", id="no folder"),
        pytest.param("a --fleet --out DIR --hpa x/y", "--hpa is not for fleets", id="one autoscaler"),
        pytest.param("a --fleet --out DIR --with f", "--with is not for fleets", id="a manifest"),
        pytest.param("a --workers 3", "--workers needs --fleet", id="workers for one"),
        pytest.param("a b", "one SOURCE is needed", id="two sources"),
        pytest.param("", "one SOURCE is needed", id="no source"),
    ],
)
def test_flags_that_do_not_fit(text: str, sentence: str):
    """One sentence, and the exit status 2."""
    result = CliRunner().invoke(cli, ["backtest", *text.split()])
    assert (result.exit_code, sentence in result.output) == (2, True), result.output
