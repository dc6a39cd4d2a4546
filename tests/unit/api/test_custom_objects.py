"""Pruning, defaults, validation, columns, scale and conditions of custom resources, as tables."""

import pytest

from podscaler.api.crd import (
    defaulting,
    json_path,
    list_types,
    printer_columns,
    pruning,
    records,
    structural,
    validation,
)
from podscaler.api.crd.version_order import sort_key
from podscaler.api.kinds.apiextensions import crd_conditions, crd_validation, customresourcedefinition
from podscaler.api.resource.resources import Object


def properties(**members: Object) -> Object:
    """An object with these members."""
    return {"type": "object", "properties": members}


TEXT: Object = {"type": "string"}
NUMBER: Object = {"type": "integer"}


def definition(**version: object) -> Object:
    """A definition as it is stored, whose names were accepted."""
    kept = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": properties(spec=NUMBER)}}
    names = {"plural": "gears", "kind": "Gear"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [{**kept, **version}]}
    crd: Object = {"metadata": {"name": "gears.example.com", "generation": 1, "uid": "1"}, "spec": spec}
    customresourcedefinition.set_defaults(crd)
    customresourcedefinition.RESOURCE.strategy.prepare_create(crd)
    return crd


@pytest.mark.parametrize(
    ("schema", "value", "left", "unknown"),
    [
        pytest.param(properties(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"], id="unknown member"),
        pytest.param(
            properties(a={"type": "array", "items": properties(b=TEXT)}),
            {"a": [{"b": "x", "c": 1}]},
            {"a": [{"b": "x"}]},
            ["a[0].c"],
            id="in a list",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **properties(a=properties(b=TEXT))},
            {"z": 1, "a": {"c": 1}},
            {"z": 1, "a": {}},
            ["a.c"],
            id="preserved above, not below",
        ),
        pytest.param(
            properties(a={"type": "object", "additionalProperties": properties(b=TEXT)}),
            {"a": {"any": {"b": "x", "c": 1}}},
            {"a": {"any": {"b": "x"}}},
            ["a.any.c"],
            id="additional properties",
        ),
        pytest.param(
            properties(), {"apiVersion": "a", "kind": "b", "metadata": {}}, None, [], id="what all have stays"
        ),
    ],
)
def test_unknown_fields_are_pruned(schema: Object, value: Object, left: Object | None, unknown: list[str]) -> None:
    """What the schema does not know goes and is told, sorted."""
    wanted = dict(value) if left is None else left
    assert (pruning.prune(value, structural.parse(schema)), value) == (unknown, wanted)


def test_defaults_apply_below_defaults_and_to_idle_nulls() -> None:
    """An absent member becomes its default, with the defaults in it; a null that may not be is as good as absent."""
    inner = {**properties(b={**TEXT, "default": "x"}), "default": {}}
    schema = structural.parse(properties(a=inner, n={**TEXT, "nullable": True, "default": "y"}, gone=TEXT))
    value: Object = {"n": None, "gone": None}
    defaulting.drop_nulls(value, schema)
    defaulting.set_defaults(value, schema)
    assert value == {"n": None, "a": {"b": "x"}}


@pytest.mark.parametrize(
    ("schema", "value", "texts"),
    [
        pytest.param(
            NUMBER, "x", ['a: Invalid value: "string": a in body must be of type integer: "string"'], id="type"
        ),
        pytest.param(
            {**NUMBER, "format": "int64"},
            1e30,
            [
                'a: Invalid value: "float64": a in body must be of type int64: "float64"',
                '<nil>: Invalid value: "": Checked value must be of type integer with format int64 in a',
            ],
            id="format",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            2**63,
            ['a: Invalid value: "number": a in body must be of type integer,string: "number"'],
            id="beyond 64 bits",
        ),
        pytest.param(
            {**NUMBER, "maximum": 3}, 4, ["a: Invalid value: 4: a in body should be less than or equal to 3"], id="max"
        ),
        pytest.param({**NUMBER, "maximum": 3}, 3, [], id="at the maximum"),
        pytest.param(
            {**TEXT, "enum": ["x", "y"]}, "z", ['a: Unsupported value: "z": supported values: "x", "y"'], id="enum"
        ),
        pytest.param({**TEXT, "maxLength": 2}, "abc", ["a: Too long: may not be more than 2 bytes"], id="too long"),
        pytest.param(
            {**TEXT, "pattern": "^b"}, "abc", ["a: Invalid value: \"abc\": a in body should match '^b'"], id="pattern"
        ),
        pytest.param({"x-kubernetes-int-or-string": True}, "5", [], id="int or string"),
        pytest.param({**properties(b=TEXT), "required": ["b"]}, {}, ["a.b: Required value"], id="required"),
        pytest.param(
            {**TEXT, "not": {"enum": ["x"]}},
            "x",
            ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
            id="not",
        ),
    ],
)
def test_values_are_judged_in_upstreams_words(schema: Object, value: object, texts: list[str]) -> None:
    """Each constraint has its sentence."""
    found = validation.field_errors({"a": value}, None, structural.parse(properties(a=schema)))
    assert [str(error) for error in found] == texts


def test_what_did_not_change_is_not_judged_again() -> None:
    """A schema that became stricter lets an object stay as it is, but not become wrong elsewhere."""
    schema = structural.parse(properties(a={**NUMBER, "maximum": 1}, b={**NUMBER, "maximum": 1}))
    found = validation.field_errors({"a": 5, "b": 6}, {"a": 5, "b": 1}, schema)
    assert [error.field for error in found] == ["b"]


def test_of_stored_elements_with_equal_keys_the_first_is_the_old_value() -> None:
    """An element is unchanged if it equals the first stored element with its keys."""
    items = properties(k=TEXT, v={**NUMBER, "maximum": 1})
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    old = {"m": [{"k": "a", "v": 5}, {"k": "a", "v": 6}]}
    schema = structural.parse(properties(m=keyed))
    fields = [
        [error.field for error in validation.field_errors({"m": [{"k": "a", "v": value}]}, old, schema)]
        for value in (5, 6)
    ]
    assert fields == [[], ["m[0].v"]]


def test_elements_that_stand_twice_are_told_once() -> None:
    """Of a set each repeated value is told where it first repeats; of a map list by its keys and their defaults."""
    items = properties(k={**TEXT, "default": "x"}, v=NUMBER)
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    plain = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    schema = structural.parse(properties(s=plain, m=keyed))
    found = list_types.field_errors({"s": ["a", "b", "a", "a"], "m": [{"k": "x"}, {"v": 1}]}, schema)
    assert [str(error) for error in found] == ['s[2]: Duplicate value: "a"', 'm[1]: Duplicate value: {"k":"x"}']


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".l[*].n", ["x", "y"]),
        (".l[-1].n", ["y"]),
        (".l[0:1].n", ["x"]),
        ('.l[?(@.n=="y")].v', [2]),
        (".['a'].b", [1]),
        (r".d\.e", [3]),
        ("..v", [1, 2]),
        (".missing.b", []),
    ],
)
def test_json_paths(path: str, found: list[object]) -> None:
    """Columns find their values as kubectl's JSONPath does."""
    obj = {"a": {"b": 1}, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "d.e": 3}
    assert json_path.values_at(obj, path) == found


def test_cells_are_of_their_columns_type() -> None:
    """A value of another type than its column leaves the cell empty."""
    wanted = [{"name": kind, "type": kind, "jsonPath": ".v"} for kind in ("string", "integer", "boolean", "number")]
    printer = printer_columns.printer(wanted, lambda obj: obj)
    assert printer.row({"metadata": {"name": "a"}, "v": 3}, 0) == ["a", "3", 3, None, 3]


def test_versions_come_in_order_of_stability() -> None:
    """Stable versions first, then beta and alpha, newest first; other names last."""
    names = ["foo", "v1", "v10", "v2alpha1", "v1beta2", "v2beta1", "v2"]
    assert sorted(names, key=sort_key) == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v2alpha1", "foo"]


def test_names_are_given_to_the_first_who_asks() -> None:
    """A kind that another definition of the group has is refused, with the reason, and nothing is established."""
    first, second = definition(), definition()
    crd_conditions.set_names_and_conditions(first, crd_conditions.names_in_use([]), "2026-01-01T00:00:00Z")
    second["spec"]["names"] = {**second["spec"]["names"], "plural": "others", "singular": "other"}
    crd_conditions.set_names_and_conditions(second, crd_conditions.names_in_use([first]), "2026-01-01T00:00:00Z")
    told = [(one["type"], one["status"], one["reason"]) for one in second["status"]["conditions"]]
    assert crd_conditions.is_true(first, crd_conditions.ESTABLISHED)
    assert told == [("NamesAccepted", "False", "ListKindConflict"), ("Established", "False", "NotAccepted")]


def test_every_served_version_has_a_record_of_its_own() -> None:
    """The stored version keeps the objects; others are faces of it, with subresources of their own."""
    crd = definition()
    other = {**crd["spec"]["versions"][0], "name": "v1beta1", "storage": False, "subresources": {"status": {}}}
    crd["spec"]["versions"].append(other)
    made = records.of(crd)
    assert [(one.key, one.storage_key, one.has_status) for one in made.served] == [
        ("gears.example.com", "gears.example.com", False),
        ("gears.example.com@v1beta1", "gears.example.com", True),
    ]


def test_rules_are_judged_with_the_object() -> None:
    """A definition with rules is taken without a warning; objects that break them are refused, others are not."""
    rules = [{"rule": "self > 1"}]
    schema = properties(spec={**NUMBER, "x-kubernetes-validations": rules})
    crd = definition(schema={"openAPIV3Schema": schema})
    assert (crd_validation.warnings(crd, None), crd_validation.validate(crd, None)) == ([], [])
    validate = records.of(crd).stored.strategy.validate
    told = [[str(fault) for fault in validate({"metadata": {"name": "a"}, "spec": spec}, None)] for spec in (1, 2)]
    assert told == [["spec: Invalid value: 1: failed rule: self > 1"], []]
