"""The golden REST captures of a real API server, replayed over HTTP against ours."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from golden_gaps import GAPS
from golden_rest import Replay
from golden_server import serving

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = ("create-hpa", "update-hpa", "scale", "lists-watch", "discovery", "errors")
NOT_HERE = {"metrics"}
AT_ONCE = 8
"""Cases are independent of each other; most of the time of those that watch is waiting."""


def _cases() -> dict[str, dict[str, Any]]:
    cases = {}
    for family in FAMILIES:
        for line in (GOLDEN / f"{family}.jsonl").read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if not NOT_HERE & set(case.get("needs") or ()):
                cases[f"{family}:{case['name']}"] = case
    return cases


CASES = _cases()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with nothing but objects is."""
    with serving(tmp_path_factory.mktemp("golden")) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def differences(url: str) -> dict[str, str]:
    """The first difference of every case, empty for those without; those that compact the history come last."""
    alone = {name: case for name, case in CASES.items() if "compaction" in (case.get("needs") or ())}
    others = {name: case for name, case in CASES.items() if name not in alone}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(others, pool.map(lambda case: Replay(url, case).run(), others.values()), strict=True))
    return found | {name: Replay(url, case).run() for name, case in alone.items()}


def _parameters() -> Iterator[Any]:
    for name in CASES:
        marks = [pytest.mark.xfail(reason=GAPS[name], strict=True)] if name in GAPS else []
        yield pytest.param(name, id=name, marks=marks)


@pytest.mark.parametrize("name", list(_parameters()))
def test_golden(name: str, differences: dict[str, str]) -> None:
    """The server answers as the captured one did; a case listed as a gap must still differ."""
    assert differences[name] == ""


def test_gaps_are_cases() -> None:
    """The list of gaps names only cases that exist."""
    assert GAPS.keys() <= CASES.keys()
