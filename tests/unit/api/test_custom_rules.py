"""Rules of custom resources: what is told where, changes, and what was broken before."""

import subprocess
import sys
from typing import Any

import pytest

from podscaler.api.crd import rule_paths, rule_types, structural
from podscaler.api.crd.rules import RuleSet

INTEGER = {"type": "integer"}


def rule(text: str, **more: Any) -> dict[str, Any]:
    """One rule."""
    return {"rule": text, **more}


def ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    """A schema with rules."""
    return {**schema, "x-kubernetes-validations": list(rules)}


def members(**properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


def told(schema: dict[str, Any], new: Any, *old: Any) -> list[str]:
    """The faults of an object, those that were there before behind a tilde."""
    found = RuleSet(structural.parse(schema)).evaluate(new, *old)
    return [str(one) for one in found.errors] + [f"~ {one}" for one in found.warnings]


MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "its text": ({}, "spec: Invalid value: failed rule: self.n > 5"),
    "its message": ({"message": " own "}, "spec: Invalid value: own"),
    "its expression": ({"message": "own", "messageExpression": "'n=' + string(self.n)"}, "spec: Invalid value: n=1"),
    "an expression that fails": (
        {"message": "own", "messageExpression": "string(1 / (self.n - 1))"},
        "spec: Invalid value: own",
    ),
    "an expression with nothing to say": ({"messageExpression": "' '"}, "spec: Invalid value: failed rule: self.n > 5"),
    "a path": ({"fieldPath": ".n"}, "spec.n: Invalid value: failed rule: self.n > 5"),
    "forbidden": ({"reason": "FieldValueForbidden", "message": "own"}, "spec: Forbidden: own"),
    "required": ({"reason": "FieldValueRequired", "message": "own"}, "spec: Required value: own"),
    "duplicate": ({"reason": "FieldValueDuplicate", "message": "own"}, "spec: Duplicate value"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    """A broken rule is told by its message expression, its message or its text, in the way its reason asks for."""
    more, text = MESSAGES[name]
    schema = members(spec=ruled(members(n=INTEGER), rule("self.n > 5", **more)))
    assert told(schema, {"spec": {"n": 1}}) == [text]


def test_places() -> None:
    """Each element and member is judged by itself, and named."""
    small = ruled(INTEGER, rule("self > 5"))
    schema = members(l={"type": "array", "items": small}, m={"type": "object", "additionalProperties": small}, n=small)
    assert told(schema, {"l": [9, 1], "m": {"a.b": 2}, "n": 3}) == [
        "l[1]: Invalid value: 1: failed rule: self > 5",
        "m[a.b]: Invalid value: 2: failed rule: self > 5",
        "n: Invalid value: 3: failed rule: self > 5",
    ]


def test_the_root_has_names() -> None:
    """Rules of the whole object see its kind and the names of its metadata; their faults have no path."""
    schema = ruled(members(spec=members()), rule("self.metadata.name == 'b' && self.kind == 'Gear'"))
    obj = {"apiVersion": "a/v1", "kind": "Gear", "metadata": {"name": "a", "uid": "u"}}
    assert told(schema, obj) == ["<nil>: Invalid value: failed rule: self.metadata.name == 'b' && self.kind == 'Gear'"]


def test_rules_that_cannot_be_evaluated() -> None:
    """An error is the fault of the object, and names the rule."""
    schema = members(spec=ruled(members(n=INTEGER), rule("1 / self.n == 1"), rule("self.n > 5", message="own")))
    assert told(schema, {"spec": {}}) == [
        'spec: Invalid value: "object": no such key: n evaluating rule: 1 / self.n == 1',
        'spec: Invalid value: "object": no such key: n evaluating rule: own',
    ]


def test_changes() -> None:
    """Rules that name oldSelf run where there is an old value, unless they take none."""
    schema = members(
        n=ruled(
            INTEGER,
            rule("self >= oldSelf", message="down"),
            rule("oldSelf.hasValue() || self < 3", optionalOldSelf=True, message="new and large"),
        )
    )
    assert (told(schema, {"n": 5}), told(schema, {"n": 2}, {"n": 5}), told(schema, {"n": 6}, {"n": 5})) == (
        ["n: Invalid value: 5: new and large"],
        ["n: Invalid value: 2: down"],
        [],
    )


def test_elements_are_recognised_by_their_keys() -> None:
    """The elements of a map list have old values, wherever they stood; those of other lists have none."""
    item = members(k={"type": "string"}, v=ruled(INTEGER, rule("self >= oldSelf")))
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = members(l={"type": "array", "items": item, **keys})
    old = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}
    assert told(schema, {"l": [{"k": "b", "v": 4}, {"k": "a", "v": 2}]}, old) == [
        "l[0].v: Invalid value: 4: failed rule: self >= oldSelf"
    ]


def test_what_was_broken_before_is_warned_of() -> None:
    """A value that did not change may go on breaking a rule; a rule about change may not be broken."""
    schema = members(n=ruled(INTEGER, rule("self > 5")), m=ruled(INTEGER, rule("self > oldSelf")), s={"type": "string"})
    old = {"n": 1, "m": 1, "s": "a"}
    assert told(schema, {**old, "s": "b"}, old) == [
        "m: Invalid value: 1: failed rule: self > oldSelf",
        "~ n: Invalid value: 1: failed rule: self > 5",
    ]


def test_the_budget_is_for_all_rules_of_an_object() -> None:
    """A rule that runs too long ends the judgement."""
    endless = "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"
    schema = members(spec=ruled(members(l={"type": "array", "items": INTEGER}), rule(endless), rule("false")))
    (fault,) = told(schema, {"spec": {"l": list(range(500))}})
    assert fault.startswith("spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded'")


NAMES = {
    "plain": "plain",
    "a-b.c/d": "a__dash__b__dot__c__slash__d",
    "a__b": "a__underscores__b",
    "namespace": "__namespace__",
    "1st": "",
    "é": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_escaped(name: str) -> None:
    """A member is called in rules by a name that an expression can write, or not at all."""
    assert rule_types.escape(name) == NAMES[name]


PATHS = {".spec.n": "spec.n", "['spec']['n']": "spec.n", ".labels['a/b']": "labels[a/b]", ".spec.zz": None, "n": None}


@pytest.mark.parametrize("path", PATHS)
def test_field_paths(path: str) -> None:
    """A fieldPath leads through members and keys of maps, and nowhere else."""
    schema = members(spec=members(n=INTEGER), labels={"type": "object", "additionalProperties": INTEGER})
    assert rule_paths.normalize(path, schema) == PATHS[path]


def test_the_language_is_loaded_for_rules_alone() -> None:
    """An API server without rules neither waits for the language nor keeps it in memory."""
    code = "import sys, podscaler.cli.up.control_plane; print([name for name in sys.modules if '.api.cel' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
