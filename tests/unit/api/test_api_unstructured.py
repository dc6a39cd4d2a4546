"""Values that a strategic merge patch may leave in the fields of a type."""

from typing import Any

import pytest

from podscaler.api.schema import unstructured
from podscaler.api.text.json_text import DecodeError

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
        unstructured.restore(value, POD)
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
    assert unstructured.restore(value, POD) == value


@pytest.mark.parametrize(
    ("number", "held"),
    [
        pytest.param(2**32 + 3, 3, id="beyond 32 bits"),
        pytest.param(-(2**32) + 3, 3, id="below 32 bits"),
        pytest.param(2**63 - 1, -1, id="the highest of 64 bits"),
        pytest.param(2**63, 0, id="beyond 64 bits"),
        pytest.param(10**19, 0, id="far beyond them"),
        pytest.param(-(10**20), 0, id="far below them"),
        pytest.param(1e30, 0, id="a large float"),
        pytest.param(float(2**32 + 3), 3, id="a whole float"),
        pytest.param(-1.0e10, -1410065408, id="a negative one"),
        pytest.param(-0.0, 0, id="a negative zero"),
    ],
)
def test_numbers_are_cut(number: float, held: int) -> None:
    """Of an integer the field keeps the bits that it has; what is beyond 64 bits was a float before."""
    assert unstructured.restore({"spec": {"priority": number}}, POD) == {"spec": {"priority": held}}


@pytest.mark.parametrize(
    ("number", "held"),
    [
        pytest.param(2**63 - 1, 2**63 - 1, id="the highest"),
        pytest.param(2**63, -(2**63), id="beyond"),
        pytest.param(-1e30, -(2**63), id="a float far below"),
    ],
)
def test_long_numbers_are_cut(number: float, held: int) -> None:
    """Fields of 64 bits hold what is beyond them as their lowest value."""
    value = {"spec": {"terminationGracePeriodSeconds": number}}
    assert unstructured.decode(value, POD).obj == {"spec": {"terminationGracePeriodSeconds": held}}


def test_numbers_of_messages_of_their_own_are_not_cut() -> None:
    """A number or text for a port is decoded as in any body."""
    with pytest.raises(DecodeError) as refused:
        unstructured.restore({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 2**32}}}]}}, POD)
    assert str(refused.value) == "json: cannot unmarshal number 4294967296 into Go value of type int32"
