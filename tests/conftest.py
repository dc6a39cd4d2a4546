"""Settings of all tests: hypothesis takes the same examples each time, as long as it needs; nothing outlives a run.

A run ends with what was skipped, and how to run it.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

import prerequisites
import survivors

settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def nothing_survives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests have started and not ended is ended after the last one, even where pytest is killed."""
    with survivors.ended(tmp_path_factory.getbasetemp()):
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped, and how to run them."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    if reasons:
        terminalreporter.section("skipped tests, and how to run them")
        terminalreporter.write_line("\n".join(prerequisites.summary(reasons)))
