"""The table of outcomes of Kubernetes' end-to-end tests."""

import subprocess
import sys
from pathlib import Path

import pytest
import upstream_e2e
from upstream_e2e import SpecOutcome, Unable

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="e2e">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"/>
<testcase name="[It] [sig-a] up and down [Slow] [sig-a, Slow]" status="passed" time="61.4"/>
<testcase name="[It] [sig-a] other [sig-a]" status="skipped" time="0"/>
<testcase name="[It] [sig-a] stays [sig-a]" status="failed" time="9">
  <failure message="timed out:&#10;  expected 3" type="failed">details</failure>
</testcase>
</testsuite></testsuites>"""
UP = SpecOutcome("[sig-a] up and down [Slow]", "passed", 61.4, "")
STAYS = SpecOutcome("[sig-a] stays", "failed", 9.0, "timed out: expected 3")


def test_a_report() -> None:
    """The tests that ran, without their labels, and the first words of their failures."""
    assert upstream_e2e.parse_report(REPORT) == [UP, STAYS]


def test_the_table() -> None:
    """A row for each test that ran with one of the controllers, and the sums."""
    assert upstream_e2e.table({"ours": [UP, STAYS], "upstream": [UP]}).splitlines() == [
        "| test | ours | upstream | reason |",
        "|---|---|---|---|",
        "| [sig-a] stays | failed (9 s) | not run | ours: timed out: expected 3 |",
        "| [sig-a] up and down [Slow] | passed (61 s) | passed (61 s) |  |",
        "",
        "ours: 1 of 2 passed",
        "upstream: 1 of 1 passed",
    ]


def test_a_program_that_starts(tmp_path: Path) -> None:
    """The block begins when the program says that it runs, and the program has ended after it."""
    code = "import time; print('ready', flush=True); time.sleep(1000)"
    with upstream_e2e.running([sys.executable, "-c", code], tmp_path / "log", starts_with="ready"):
        pass
    assert (tmp_path / "log").read_text() == ""


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    """A program that ends before it is ready is an error that names the log."""
    command = [sys.executable, "-c", "raise SystemExit('no')"]
    program = upstream_e2e.running(command, tmp_path / "log", starts_with="ready")
    with pytest.raises(Unable, match="does not start"), program:
        pass
    assert (tmp_path / "log").read_text() == "no\n"


def test_without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and a sentence."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert upstream_e2e.main([]) == 2
    assert capsys.readouterr().err == "Go is not installed, and it is needed to build e2e.test\n"


def test_a_failed_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "go").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "go").chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        upstream_e2e.ensure_suite()
    assert list((tmp_path / "cache" / "podscaler" / "assets").iterdir()) == []
