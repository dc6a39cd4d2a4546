"""JSON patch: every operation where it applies and where it does not."""

from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import json_patch


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        pytest.param({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}, id="add a member"),
        pytest.param({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}, id="add replaces a member"),
        pytest.param({"a": 1}, {"op": "add", "path": "/a"}, {"a": None}, id="a missing value is null"),
        pytest.param([1, 3], {"op": "add", "path": "/1", "value": 2}, [1, 2, 3], id="add inserts before an element"),
        pytest.param([1], {"op": "add", "path": "/1", "value": 2}, [1, 2], id="add at the end by index"),
        pytest.param([1], {"op": "add", "path": "/-", "value": 2}, [1, 2], id="add at the end by dash"),
        pytest.param([1, 2], {"op": "add", "path": "/-1", "value": 3}, [1, 2, 3], id="add after the last by -1"),
        pytest.param({"a/b": 1}, {"op": "remove", "path": "/a~1b"}, {}, id="a slash is escaped"),
        pytest.param({"a~b": 1}, {"op": "remove", "path": "/a~0b"}, {}, id="a tilde is escaped"),
        pytest.param([1, 2], {"op": "remove", "path": "/-1"}, [1], id="remove the last"),
        pytest.param({"a": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2}, {"a": {"b": 2}}, id="replace"),
        pytest.param([1, 2], {"op": "replace", "path": "/0", "value": 5}, [5, 2], id="replace an element"),
        pytest.param({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}, id="move"),
        pytest.param({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}, id="copy"),
        pytest.param({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}, id="test holds"),
        pytest.param({}, {"op": "test", "path": "/a", "value": None}, {}, id="an absent member tests as null"),
        pytest.param({}, {"op": "replace", "path": "/a", "value": 1}, {"a": 1}, id="replace what is not there"),
        pytest.param({}, {"op": "copy", "from": "/a", "path": "/b"}, {"b": None}, id="copy what is not there"),
        pytest.param({"": 1}, {"op": "remove", "path": "/"}, {}, id="the empty name is a name"),
        pytest.param({"a": 1}, {"op": "replace", "path": "x/a", "value": 2}, {"a": 2}, id="what precedes is skipped"),
    ],
)
def test_operation_applies(document: Any, operation: dict[str, Any], expected: Any) -> None:
    """An operation that fits changes the document as RFC 6902 says."""
    assert json_patch.apply_patch(document, [operation]) == expected


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        pytest.param({}, {"op": "add", "path": "/a/b", "value": 1}, id="add without a parent"),
        pytest.param({}, {"op": "add", "path": "a", "value": 1}, id="a pointer without a slash"),
        pytest.param({}, {"op": "replace", "path": "", "value": "x"}, id="a text in the place of the document"),
        pytest.param({}, {"op": "replace", "path": ""}, id="nothing in the place of the document"),
        pytest.param({}, {"op": "add", "path": "", "value": {}}, id="the whole document added"),
        pytest.param([1], {"op": "add", "path": "/2", "value": 1}, id="add behind the end"),
        pytest.param([1], {"op": "add", "path": "/-3", "value": 1}, id="add before the start"),
        pytest.param([1], {"op": "add", "path": "/x", "value": 1}, id="an index that is no number"),
        pytest.param([1], {"op": "add", "path": f"/{'9' * 5000}", "value": 1}, id="an index of 5000 digits"),
        pytest.param({}, {"op": "remove", "path": "/a"}, id="remove what is not there"),
        pytest.param([], {"op": "remove", "path": "/0"}, id="remove from an empty list"),
        pytest.param([1], {"op": "replace", "path": "/1", "value": 1}, id="replace behind the end"),
        pytest.param({}, {"op": "move", "from": "/a", "path": "/b"}, id="move what is not there"),
        pytest.param({"a": 1}, {"op": "copy", "path": "/b"}, id="copy from nowhere"),
        pytest.param({"a": 1}, {"op": "test", "path": "/a", "value": True}, id="1 is not true"),
        pytest.param({"a": [1]}, {"op": "test", "path": "/a", "value": [1, 2]}, id="a longer list"),
        pytest.param({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, id="a member of a number"),
        pytest.param({}, {"op": "merge", "path": "/a"}, id="an operation that is none"),
        pytest.param({}, {"op": 5, "path": "/a"}, id="an operation that is no text"),
        pytest.param({}, {"path": "/a"}, id="no operation"),
    ],
)
def test_operation_does_not_apply(document: Any, operation: dict[str, Any]) -> None:
    """An operation that does not fit is the one 422 that upstream gives for all of them."""
    with pytest.raises(StatusError) as raised:
        json_patch.apply_patch(document, [operation])
    assert raised.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


def test_all_or_nothing() -> None:
    """A patch whose last operation fails leaves the document as it was."""
    document = {"a": 1}
    with pytest.raises(StatusError):
        json_patch.apply_patch(document, [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}])
    assert document == {"a": 1}


def test_values_are_not_shared() -> None:
    """What an operation adds is a copy: changing it later changes neither patch nor source."""
    operations = [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}]
    assert json_patch.apply_patch({}, operations) == {"a": [1]}
    assert operations[0]["value"] == []


def test_too_many_operations() -> None:
    """More than 10,000 operations are refused before any is applied."""
    with pytest.raises(StatusError, match="The allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patch.apply_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)


def test_copies_cannot_fill_the_memory() -> None:
    """Doubling a value by copies ends in an API error once 3 MiB have been copied."""
    doubling = [
        {"op": "copy", "from": "/a", "path": "/a/-"},
    ] * 64
    with pytest.raises(StatusError) as raised:
        json_patch.apply_patch({"a": ["x" * 1000]}, doubling)
    assert raised.value.code == 422


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param({}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp", id="an object"),
        pytest.param([1], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp", id="a number"),
    ],
)
def test_what_is_no_list_of_operations(document: Any, text: str) -> None:
    """A document of another shape is a 400 in the decoder's words."""
    with pytest.raises(StatusError) as raised:
        json_patch.parse(document)
    assert (raised.value.code, raised.value.message) == (400, f"error decoding patch: {text}")


def test_unknown_fields_are_named_by_position() -> None:
    """Members that no operation has are listed as upstream's strict decoder lists them."""
    operations = [{"op": "test", "path": "/a", "value": 1}, {"op": "add", "path": "/a", "foo": 1}]
    assert json_patch.unknown_fields(operations) == ['json patch unknown field "[1].foo"']


@pytest.mark.parametrize("whole", [{"b": 1}, [1]], ids=["object", "list"])
def test_the_whole_document_can_be_replaced(whole: Any) -> None:
    """What is put in its place is not the patch's own, and later operations change it."""
    operations = [{"op": "replace", "path": "", "value": whole}]
    assert json_patch.apply_patch({"a": 1}, operations) == whole
    more = {"op": "add", "path": "/c" if isinstance(whole, dict) else "/-", "value": 2}
    json_patch.apply_patch({"a": 1}, [*operations, more])
    assert operations[0]["value"] == ({"b": 1} if isinstance(whole, dict) else [1])
