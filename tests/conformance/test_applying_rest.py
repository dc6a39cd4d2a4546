"""Answers of a real API server about server-side apply and managedFields, replayed over HTTP against ours.

applying.jsonl was recorded from kube-apiserver v1.37.0 in the form of the golden captures.
"""

from pathlib import Path

import pytest
from golden_replays import Captures

CAPTURES = Captures(Path(__file__).parent / "applying.jsonl")


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest) -> dict[str, str]:
    """The first difference of every case that was selected, empty for those without."""
    selected = {item.name for item in request.session.items}
    return CAPTURES.differences(lambda name: f"test_applying[{name}]" in selected)


@pytest.mark.parametrize("name", CAPTURES.names)
def test_applying(name: str, differences: dict[str, str]) -> None:
    """The server answers as the recorded one did."""
    assert differences[name] == ""
