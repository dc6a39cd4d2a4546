"""Answers of a real API server about server-side apply and managedFields, replayed over HTTP against ours.

applying.jsonl was recorded from kube-apiserver v1.37.0 in the form of the golden captures.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from golden_rest import Replay
from golden_server import serving

AT_ONCE = 4


def _cases() -> dict[str, dict[str, Any]]:
    lines = (Path(__file__).parent / "applying.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["name"]: case for case in map(json.loads, lines)}


CASES = _cases()


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The first difference of every case, empty for those without."""
    with serving(tmp_path_factory.mktemp("applying")) as port:
        url = f"http://127.0.0.1:{port}"
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda case: Replay(url, case).run(), CASES.values())
            yield dict(zip(CASES, found, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_applying(name: str, differences: dict[str, str]) -> None:
    """The server answers as the recorded one did."""
    assert differences[name] == ""
