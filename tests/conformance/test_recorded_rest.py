"""The project's own captures of a real API server, replayed against ours: nothing may differ, nothing be more."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from golden_gaps import RECORDED_GAPS
from golden_matching import Matcher
from golden_rest import Replay
from golden_server import serving

RECORDED = Path(__file__).parent / "recorded"
AT_ONCE = 8


def _cases() -> dict[str, dict[str, Any]]:
    cases = {}
    for family in sorted(RECORDED.glob("*.jsonl")):
        for line in family.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            cases[f"{family.stem}:{case['name']}"] = case
    return cases


CASES = _cases()


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The first difference of every case, empty for those without."""
    with serving(tmp_path_factory.mktemp("recorded")) as port, ThreadPoolExecutor(AT_ONCE) as pool:

        def first_difference(case: dict[str, Any]) -> str:
            try:
                return Replay(f"http://127.0.0.1:{port}", case, matcher=Matcher(strict=True)).run()
            except OSError as error:  # of one case, and no other
                return f"no answer: {error!r}"

        yield dict(zip(CASES, pool.map(first_difference, CASES.values()), strict=True))


def _parameters() -> Iterator[Any]:
    for name in CASES:
        reason = RECORDED_GAPS.get(name)
        yield pytest.param(name, id=name, marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])


@pytest.mark.parametrize("name", list(_parameters()))
def test_recorded(name: str, differences: dict[str, str]) -> None:
    """The server answers as the recorded one did; a case listed as a gap must still differ."""
    assert differences[name] == ""


def test_recorded_gaps_are_cases() -> None:
    """The list of gaps names only cases that exist."""
    assert RECORDED_GAPS.keys() <= CASES.keys()
