"""Laws of ownership: algebra of sets, applying twice, applying and taking back, comparing against walking."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.managed_fields import (
    comparing,
    extracting,
    field_sets,
    managed_kinds,
    managers,
    merging,
    structural_types,
)
from podscaler.api.managed_fields.managed_kinds import Application, ManagedKind
from podscaler.api.managed_fields.updating import Versions

Object = dict[str, Any]

ITEM: Object = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "value": {"type": "integer"}, "tags": {"type": "array"}},
}
SPEC: Object = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "items": {
            "type": "array",
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
TYPE = structural_types.of_kind({"type": "object", "properties": {"spec": SPEC}})
KIND = ManagedKind(Versions({"v1": TYPE}.get, lambda obj, _version, _wanted: obj, {}), lambda _version: {})

_words = st.sampled_from("abcd")
_small = st.integers(0, 3)
_items = st.lists(
    st.fixed_dictionaries({"name": _words}, optional={"value": _small, "tags": st.lists(_small, max_size=2)}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
_free = st.recursive(_small | _words, lambda inner: st.dictionaries(_words, inner, max_size=2), max_leaves=4)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": _small,
        "labels": st.dictionaries(_words, _words, min_size=1, max_size=3),
        "set": st.lists(_words, min_size=1, max_size=3, unique=True),
        "items": _items.filter(bool),
        "whole": st.dictionaries(_words, _small, max_size=2),
        "free": st.dictionaries(_words, _free, min_size=1, max_size=2),
    },
)
_nodes = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from(("f:a", "f:b", 'v:"x"', ".")), inner, max_size=3)
)


def _tidied(node: Object) -> Object:
    """A node as sets have it: `.` has nothing below it and does not stand alone."""
    below = {element: _tidied(each) for element, each in node.items() if element != "."}
    return {".": {}, **below} if "." in node and below else below


SETS = _nodes.map(lambda node: {element: _tidied(each) for element, each in node.items() if element != "."})


def _paths(fields: Object) -> set[tuple[str, ...]]:
    return set(field_sets.paths(fields))


@given(SETS, SETS)
def test_sets_are_sets(one: Object, other: Object) -> None:
    """Union, difference and intersection are those of the paths; what is ignored goes with all below it."""
    ones, others = _paths(one), _paths(other)
    assert _paths(field_sets.union(one, other)) == ones | others
    assert _paths(field_sets.difference(one, other)) == ones - others
    assert _paths(field_sets.intersection(one, other)) == ones & others
    below = {path for path in ones if any(path[: len(each)] == each for each in others)}
    assert _paths(field_sets.without_trees(one, other)) == ones - below


@given(SETS)
def test_entries_survive_a_client(fields: Object) -> None:
    """What is written, sent back and read is the same."""
    if not fields:
        return
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    assert managers.to_entries(managers.parse_sent([entry]).items()) == [entry]


@given(SPECS, SPECS)
def test_changes_lead_from_one_to_the_other(one: Object, other: Object) -> None:
    """No change is empty, all of a new object is written, and what comes one way goes the other."""
    there, back = (comparing.compare({"spec": a}, {"spec": b}, TYPE) for a, b in ((one, other), (other, one)))
    assert (not there.written and not there.removed) == (one == other or not _differs(one, other))
    appeared = _paths(there.written) - _paths(back.written)
    assert appeared <= _paths(back.removed)


def _differs(one: Object, other: Object) -> bool:
    """Whether owners can tell two specs apart: the order of items is nobody's."""
    return _unordered(one) != _unordered(other)


def _unordered(spec: Object) -> Object:
    result = dict(spec)
    for name in ("set", "items"):
        if name in result:
            result[name] = sorted(result[name], key=str)
    return result


@given(SPECS, SPECS)
def test_merging_is_idempotent(live: Object, config: Object) -> None:
    """Merging the same twice is merging it once, and what is merged is in the result."""
    once = merging.merge({"spec": live}, {"spec": config}, TYPE)
    assert merging.merge(once, {"spec": config}, TYPE) == once
    wanted = extracting.field_set({"spec": config}, TYPE)
    assert _paths(wanted) - {("f:spec",)} <= _paths(extracting.field_set(once, TYPE)) | _emptied(config)


def _emptied(config: Object) -> set[tuple[str, ...]]:
    """Paths that only stand for something empty."""
    return {
        path for path in _paths(extracting.field_set({"spec": config}, TYPE)) if len(path) > 1 and path[1] == "f:free"
    }


def _applied(live: Object | None, name: str, spec: Object) -> Object:
    before = dict(live["metadata"]) if live else {}
    entries = before.pop("managedFields", [])
    bare = {**live, "metadata": before} if live else None
    return managed_kinds.apply(
        KIND, bare, entries, Application({"spec": spec}, name, "v1", "2026-01-01T00:00:00Z", force=True)
    )


@given(SPECS, SPECS)
def test_applying_twice_is_applying_once(one: Object, other: Object) -> None:
    """The same configuration again changes neither the object nor its owners."""
    obj = _applied(_applied(None, "a", one), "b", other)
    assert _applied(obj, "b", other) == obj


@given(SPECS, SPECS)
def test_what_is_applied_can_be_taken_back(one: Object, other: Object) -> None:
    """A manager that applies nothing any more leaves what others own."""
    obj = _applied(_applied(None, "a", one), "b", other)
    left = _applied(obj, "b", {})
    owned = {entry["manager"]: entry["fieldsV1"] for entry in left["metadata"]["managedFields"]}
    assert _paths(owned.get("b", {})) <= {("f:spec",)}
    kept = _paths(extracting.field_set(left, TYPE))
    assert _paths(owned.get("a", {})) - {("f:spec",)} <= kept | {("f:spec",)} | _emptied(one)
