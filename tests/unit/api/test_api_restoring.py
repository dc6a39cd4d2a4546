"""Values that a strategic merge patch may leave in the fields of a type."""

from typing import Any

import pytest

from podscaler.api import restoring
from podscaler.api.json_text import DecodeError

POD = "core/v1.Pod"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param([], "cannot restore struct from: slice", id="a list for an object"),
        pytest.param({"spec": "x"}, "cannot restore struct from: string", id="a text for an object"),
        pytest.param({"metadata": {"labels": []}}, "cannot restore map from slice", id="a list for a map"),
        pytest.param({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string", id="a number for a text"),
        pytest.param({"metadata": {"labels": {"a": True}}}, "unrecognized type: string", id="a truth for a text"),
        pytest.param({"spec": {"containers": {}}}, "cannot restore slice from map", id="an object for a list"),
        pytest.param({"spec": {"containers": ["x"]}}, "cannot restore struct from: string", id="a text in a list"),
        pytest.param({"spec": {"priority": "1"}}, "unrecognized type: int32", id="a text for a number"),
        pytest.param({"spec": {"priority": 1.5}}, "cannot convert float64 to int32", id="a fraction for a number"),
        pytest.param({"spec": {"hostNetwork": 1}}, "unrecognized type: bool", id="a number for a truth"),
    ],
)
def test_wrong_types(value: Any, text: str) -> None:
    """The first value of a wrong type is told in the words of Go's conversion."""
    with pytest.raises(DecodeError) as refused:
        restoring.check(value, POD)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec": {"priority": 2.0, "nodeName": None, "unknown": 5}}, id="whole numbers, null, unknown"),
        pytest.param({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}, id="a time"),
        pytest.param({"spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}}, id="an amount"),
    ],
)
def test_right_types(value: Any) -> None:
    """What fits is let through, and what no field is there for is somebody else's business."""
    restoring.check(value, POD)
