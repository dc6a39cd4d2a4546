"""Settings of all tests: hypothesis takes the same examples each time, as long as it needs; nothing outlives a run.

A run ends with what was skipped, and how to run it.
"""

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

import prerequisites
import survivors
import work_units

settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def nothing_survives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests have started and not ended is ended after the last one, even where pytest is killed."""
    with survivors.ended(tmp_path_factory.getbasetemp()):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for among the thousands of tests, neither while they are collected nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A worker has its tests in the order in which they are distributed."""
    if hasattr(config, "workerinput"):
        work_units.sort(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> work_units.Scheduling | None:
    """Files, and parts of files, are distributed over the workers."""
    return work_units.scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped, and how to run them."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    if reasons:
        terminalreporter.section("skipped tests, and how to run them")
        terminalreporter.write_line("\n".join(prerequisites.summary(reasons)))
