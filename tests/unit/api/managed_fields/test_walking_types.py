"""Objects along their types: what changed, what is there, what is merged, what is removed, what does not fit."""

from typing import Any

import pytest

from podscaler.api.managed_fields import (
    comparing,
    extracting,
    field_types,
    merging,
    message_types,
    pruning,
    structural_types,
    type_checking,
)
from podscaler.api.managed_fields.field_types import FieldType

Object = dict[str, Any]

DEPLOYMENT = message_types.of_message("apps/v1.Deployment")
POD = message_types.of_message("core/v1.Pod")
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "port": {"x-kubernetes-int-or-string": True},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "plain": {"type": "array", "items": {"type": "object"}},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "zone"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "zone": {"type": "string", "default": "a"},
                            "count": {"type": "integer"},
                        },
                    },
                },
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    },
}
SET = "element 0: associative list without keys has an element that's"
NO_KEY = (
    "element 0: associative list with keys has an element that omits all key fields "
    """["name"] (and doesn't have default values for any key fields)"""
)
WIDGET = structural_types.of_kind(SCHEMA)


def spec(**fields: Any) -> Object:
    """A widget with such a spec."""
    return {"spec": fields}


def containers(*each: Object) -> Object:
    """A pod with such containers."""
    return {"spec": {"containers": list(each)}}


@pytest.mark.parametrize(
    ("old", "new", "written", "removed"),
    [
        pytest.param(spec(size=1), spec(size=1), {}, {}, id="nothing"),
        pytest.param(spec(size=1), spec(size=2), {"f:size": {}}, {}, id="a scalar"),
        pytest.param(spec(), spec(size=None), {"f:size": {}}, {}, id="null is a value"),
        pytest.param(spec(size=1), spec(), {}, {"f:size": {}}, id="a scalar that goes"),
        pytest.param(spec(whole={"a": "1"}), spec(whole={"a": "2"}), {"f:whole": {}}, {}, id="an atomic map"),
        pytest.param(
            spec(labels={"a": "1"}),
            spec(labels={"a": "2", "b": "3"}),
            {"f:labels": {"f:a": {}, "f:b": {}}},
            {},
            id="a map",
        ),
        pytest.param(spec(), spec(labels={"a": "1"}), {"f:labels": {".": {}, "f:a": {}}}, {}, id="a map that comes"),
        pytest.param(spec(labels={"a": "1"}), spec(labels={}), {}, {"f:labels": {"f:a": {}}}, id="a map that empties"),
        pytest.param(spec(labels=None), spec(labels={}), {"f:labels": {}}, {}, id="null and empty differ"),
        pytest.param(spec(set=["a"]), spec(set=["b", "a"]), {"f:set": {'v:"b"': {}}}, {}, id="a set"),
        pytest.param(spec(plain=[{"a": 1}]), spec(plain=[{"a": 2}]), {"f:plain": {}}, {}, id="an atomic list"),
        pytest.param(
            spec(items=[{"name": "x"}]),
            spec(items=[{"name": "x", "count": 1}]),
            {"f:items": {'k:{"name":"x","zone":"a"}': {"f:count": {}}}},
            {},
            id="an item, by a key's default",
        ),
        pytest.param(
            spec(items=[{"name": "x", "zone": "b"}]),
            spec(items=[]),
            {},
            {"f:items": {'k:{"name":"x","zone":"b"}': {".": {}, "f:name": {}, "f:zone": {}}}},
            id="an item that goes",
        ),
        pytest.param(
            spec(free={"a": 1}),
            spec(free={"a": {"b": 1}}),
            {"f:free": {"f:a": {".": {}, "f:b": {}}}},
            {},
            id="a shape that changes",
        ),
        pytest.param(
            spec(set=["a", "a"]),
            spec(set=["a"]),
            {"f:set": {'v:"a"': {}}},
            {"f:set": {'v:"a"': {}}},
            id="a duplicate that goes",
        ),
        pytest.param(
            spec(set=["a"]),
            spec(set=["a", "a"]),
            {"f:set": {'v:"a"': {}}},
            {"f:set": {'v:"a"': {}}},
            id="a duplicate that comes",
        ),
        pytest.param(
            spec(set=["a", "a"]), spec(set=["a", "a", "a"]), {"f:set": {'v:"a"': {}}}, {}, id="one duplicate more"
        ),
    ],
)
def test_changes(old: Object, new: Object, written: Object, removed: Object) -> None:
    """What a change wrote and removed is named part by part, as far as parts have owners."""
    found = comparing.compare(old, new, WIDGET)
    in_spec = [fields.get("f:spec", {}) for fields in (found.written, found.removed)]
    assert in_spec == [written, removed]


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        pytest.param(spec(size=1, port="http"), {"f:spec": {"f:size": {}, "f:port": {}}}, id="scalars"),
        pytest.param(spec(), {"f:spec": {}}, id="an empty object"),
        pytest.param(spec(labels={"a": "1"}), {"f:spec": {"f:labels": {"f:a": {}}}}, id="a map without itself"),
        pytest.param(spec(labels=None), {"f:spec": {"f:labels": {}}}, id="null"),
        pytest.param(spec(set=[]), {}, id="an empty list"),
        pytest.param(spec(plain=[]), {"f:spec": {"f:plain": {}}}, id="an empty atomic list"),
        pytest.param(
            spec(items=[{"name": "x"}]),
            {"f:spec": {"f:items": {'k:{"name":"x","zone":"a"}': {".": {}, "f:name": {}}}}},
            id="an item with itself",
        ),
        pytest.param(
            spec(free={"a": {"b": [1]}}), {"f:spec": {"f:free": {"f:a": {".": {}, "f:b": {}}}}}, id="without a schema"
        ),
        pytest.param(spec(set=["a", "a"]), {"f:spec": {"f:set": {'v:"a"': {}}}}, id="duplicates"),
    ],
)
def test_fields_of_an_object(value: Object, fields: Object) -> None:
    """Parts are owned by themselves, what holds them is not."""
    assert extracting.field_set(value, WIDGET) == fields


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        pytest.param(["a", "b"], ["x", "b", "y"], ["a", "x", "b", "y"], id="between"),
        pytest.param(["a", "b"], ["b", "a"], ["b", "a"], id="in another order"),
        pytest.param(["a", "b", "c"], ["c"], ["a", "b", "c"], id="at the end"),
        pytest.param(["x", "b", "y"], ["y", "x", "z", "b"], ["y", "x", "z", "b"], id="all, and more"),
        pytest.param([], ["a"], ["a"], id="into nothing"),
        pytest.param(["a"], [], ["a"], id="nothing into it"),
        pytest.param(["a", "a", "b"], ["b"], ["a", "a", "b"], id="duplicates that nobody wants stay"),
        pytest.param(["a", "a", "b"], ["a", "c"], ["a", "c", "b"], id="duplicates that are wanted become one"),
    ],
)
def test_lists_are_merged(live: list[str], config: list[str], merged: list[str]) -> None:
    """The order is that of the configuration; others' items stay where they were among those of both."""
    found = merging.merge(spec(set=live), spec(set=config), WIDGET)
    assert found == spec(set=merged)


def test_objects_are_merged() -> None:
    """Maps and items are merged, atomic values replaced; neither side is changed."""
    live = containers({"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"})
    config = containers({"name": "a", "image": "3", "args": ["y", "z"]})
    expected = containers({"name": "a", "image": "3", "args": ["y", "z"]}, {"name": "b", "image": "2"})
    assert merging.merge(live, config, POD) == expected
    assert live["spec"]["containers"][0]["image"] == "1"


def test_removal_leaves_null_where_nothing_is_left() -> None:
    """Fields, items and what is left of what held them."""
    obj = spec(size=1, labels={"a": "1"}, set=["a", "b"], items=[{"name": "x", "count": 1}])
    gone: Object = {
        "f:spec": {
            "f:labels": {"f:a": {}},
            "f:set": {'v:"a"': {}},
            "f:items": {'k:{"name":"x","zone":"a"}': {"f:count": {}}},
        }
    }
    assert pruning.without_fields(obj, gone, WIDGET) == spec(size=1, labels=None, set=["b"], items=[{"name": "x"}])


def test_declared_fields_are_members_for_removal() -> None:
    """What holds removed fields goes with them, if its object declares it."""
    fields: Object = {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:template": {"f:spec": {"f:x": {}}}}}
    assert extracting.with_named_fields(fields, DEPLOYMENT) == {
        "f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}},
        "f:spec": {".": {}, "f:template": {".": {}, "f:spec": {".": {}, "f:x": {}}}},
    }


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        pytest.param(spec(size=1), [], id="right"),
        pytest.param(
            spec(size="x"), [".spec.size: expected numeric (int or float), got string"], id="a text for a number"
        ),
        pytest.param(
            spec(labels={"a": 1}),
            [".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}"],
            id="a number for a text",
        ),
        pytest.param(spec(set=3), [".spec.set: expected list, got &{3}"], id="a number for a list"),
        pytest.param(spec(whole=[]), [".spec.whole: expected map, got &{[]}"], id="a list for a map"),
        pytest.param(spec(zz=1), [".spec.zz: field not declared in schema"], id="unknown"),
        pytest.param(spec(set=["a", "a"]), ['.spec.set: duplicate entries for key [="a"]'], id="duplicates"),
        pytest.param(spec(set=[None]), [f".spec.set: {SET} an explicit null"], id="null in a set"),
        pytest.param(spec(set=[{}]), [f".spec.set: {SET} a map type"], id="a map in a set"),
        pytest.param(spec(parts=[{}]), [f".spec.parts: {NO_KEY}"], id="an item without key"),
        pytest.param(
            spec(items=[None]),
            [".spec.items: element 0: associative list with keys may not have a null element"],
            id="a null item",
        ),
        pytest.param(spec(free={"a": [1, {"b": None}]}), [], id="anything where there is no schema"),
        pytest.param(spec(port=[]), [".spec.port: expected any scalar, got &{[]}"], id="a list for a number or text"),
        pytest.param(
            {"metadata": {"labels": "x"}}, [".metadata.labels: expected map, got &{x}"], id="metadata has its type"
        ),
    ],
)
def test_what_does_not_fit(value: Object, faults: list[str]) -> None:
    """A configuration must fit its type, and is told where it does not."""
    assert type_checking.errors(value, WIDGET) == faults


def test_several_faults_are_listed() -> None:
    """One fault stands alone, several stand below each other."""
    assert type_checking.summary(["a: b"]) == "a: b"
    assert type_checking.summary(["a: b", "c: d"]) == "errors:\n  a: b\n  c: d"


@pytest.mark.parametrize(
    ("message", "path", "kind"),
    [
        pytest.param("core/v1.PodSpec", ("containers",), ("name",), id="a merged list"),
        pytest.param("core/v1.Container", ("ports",), ("containerPort", "protocol"), id="two keys"),
        pytest.param("meta/v1.ObjectMeta", ("finalizers",), (), id="a set"),
        pytest.param("core/v1.Container", ("args",), None, id="an atomic list"),
    ],
)
def test_types_of_built_in_lists(message: str, path: tuple[str], kind: tuple[str, ...] | None) -> None:
    """Lists of the API types have the keys that their types declare."""
    fields = message_types.of_message(message).map
    assert fields is not None
    found = fields.child(path[0])
    assert found is not None
    assert found.list is not None
    assert (None if found.list.atomic else found.list.keys) == kind


def test_types_of_built_in_objects() -> None:
    """A selector has one owner, a template many; a quantity is text or number."""
    fields = DEPLOYMENT.map
    assert fields is not None
    inside = (fields.child("spec") or FieldType()).map
    assert inside is not None
    atomic = {name: (inside.child(name) or FieldType()).map for name in ("selector", "template")}
    assert {name: kind.atomic for name, kind in atomic.items() if kind} == {"selector": True, "template": False}
    assert field_types.shape_of(field_types.DEDUCED, 1) == FieldType(scalar="untyped")
