"""Sets of paths in the form of FieldsV1: algebra, steps of paths, how they are shown."""

from typing import Any

import pytest

from podscaler.api.managed_fields import field_sets, path_elements
from podscaler.api.managed_fields.path_elements import ElementError

Set = dict[str, Any]

REPLICAS: Set = {"f:spec": {"f:replicas": {}}}
SPEC: Set = {"f:spec": {}}
BOTH: Set = {"f:spec": {".": {}, "f:replicas": {}}}
PORTS: Set = {"f:ports": {'k:{"port":80}': {".": {}, "f:name": {}}, 'k:{"port":81}': {}}}


@pytest.mark.parametrize(
    ("one", "other", "union", "difference", "intersection"),
    [
        pytest.param({}, {}, {}, {}, {}, id="nothing"),
        pytest.param(REPLICAS, {}, REPLICAS, REPLICAS, {}, id="with nothing"),
        pytest.param(REPLICAS, REPLICAS, REPLICAS, {}, REPLICAS, id="with itself"),
        pytest.param(SPEC, REPLICAS, BOTH, SPEC, {}, id="a path and one below it"),
        pytest.param(REPLICAS, SPEC, BOTH, REPLICAS, {}, id="a path and one above it"),
        pytest.param(BOTH, SPEC, BOTH, REPLICAS, SPEC, id="both without the upper"),
        pytest.param(BOTH, REPLICAS, BOTH, SPEC, REPLICAS, id="both without the lower"),
        pytest.param(
            PORTS,
            {"f:ports": {'k:{"port":81}': {}}},
            PORTS,
            {"f:ports": {'k:{"port":80}': {".": {}, "f:name": {}}}},
            {"f:ports": {'k:{"port":81}': {}}},
            id="an item of a list",
        ),
    ],
)
def test_algebra(one: Set, other: Set, union: Set, difference: Set, intersection: Set) -> None:
    """A path is a member or not whatever lies below it."""
    assert field_sets.union(one, other) == union
    assert field_sets.difference(one, other) == difference
    assert field_sets.intersection(one, other) == intersection


def test_what_does_not_change_is_the_same_object() -> None:
    """Sets that a write does not concern stay as they were read."""
    assert field_sets.difference(PORTS, REPLICAS) is PORTS
    assert field_sets.union(PORTS, {"f:ports": {'k:{"port":81}': {}}}) is PORTS


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(("f:ports",), False, id="only what lies below it"),
        pytest.param(("f:ports", 'k:{"port":80}'), True, id="a member with members below"),
        pytest.param(("f:ports", 'k:{"port":81}'), True, id="a member alone"),
        pytest.param(("f:ports", 'k:{"port":81}', "f:name"), False, id="below a member"),
        pytest.param(("f:status",), False, id="elsewhere"),
    ],
)
def test_membership(path: tuple[str, ...], found: bool) -> None:
    """A path is in a set if its node is empty or marked."""
    assert field_sets.has(PORTS, path) == found


def test_trees_go_as_a_whole() -> None:
    """What is ignored is ignored with all that lies below it."""
    fields = {"f:spec": {"f:a": {}}, "f:status": {".": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}
    ignored = field_sets.of(("f:status",), ("f:metadata", "f:labels"))
    assert field_sets.without_trees(fields, ignored) == {"f:spec": {"f:a": {}}}


def test_paths_of_one_level_come_first() -> None:
    """Refusals list fields in this order."""
    fields: Set = {"f:b": {}, "f:a": {".": {}, "f:z": {}}, "f:c": {"f:y": {}}}
    assert list(field_sets.paths(fields)) == [("f:a",), ("f:b",), ("f:a", "f:z"), ("f:c", "f:y")]


def test_elements_are_written_in_order() -> None:
    """What is stored does not depend on how it came about."""
    fields = field_sets.sort_elements({"f:b": {"f:y": {}, ".": {}}, "f:a": {}})
    assert [list(fields), list(fields["f:b"])] == [["f:a", "f:b"], [".", "f:y"]]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param(("f:spec", "f:replicas"), ".spec.replicas", id="fields"),
        pytest.param(
            ("f:ports", path_elements.keyed({"protocol": "TCP", "port": 80})),
            '.ports[port=80,protocol="TCP"]',
            id="keys",
        ),
        pytest.param(("f:finalizers", path_elements.value("a/b")), '.finalizers[="a/b"]', id="a value"),
        pytest.param(("f:x", path_elements.value(True)), ".x[=true]", id="a boolean"),
        pytest.param(("f:x", "i:3"), ".x[3]", id="a place"),
    ],
)
def test_paths_are_shown(path: tuple[str, ...], shown: str) -> None:
    """Paths look as upstream's refusals show them."""
    assert path_elements.path_text(path) == shown


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        pytest.param("f:a.b/c", "f:a.b/c", id="a field"),
        pytest.param('k:{ "b": 1, "a": "x" }', 'k:{"a":"x","b":1}', id="keys in order, without blanks"),
        pytest.param('v: "x"', 'v:"x"', id="a value"),
        pytest.param("i:03", None, id="no number"),
        pytest.param("i:3", "i:3", id="a place"),
        pytest.param("q:x", "", id="a kind that nobody knows"),
        pytest.param("x", None, id="too short"),
        pytest.param("fx", None, id="without a colon"),
        pytest.param("k:{", None, id="no JSON"),
        pytest.param("k:{}", None, id="no keys"),
        pytest.param("k:[]", None, id="keys that are no object"),
        pytest.param("i:true", None, id="a place that is none"),
    ],
)
def test_steps_of_clients(text: str, parsed: str | None) -> None:
    """What clients write has one form afterwards, or is refused."""
    if parsed is None:
        with pytest.raises(ElementError):
            path_elements.parse(text)
    else:
        assert path_elements.parse(text) == parsed
