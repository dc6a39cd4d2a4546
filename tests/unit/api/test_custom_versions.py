"""Objects of definitions with several versions, embedded objects, and what is said of sets."""

import pytest

from podscaler.api.crd import decoding, records, structural
from podscaler.api.kinds.apiextensions import crd_validation
from podscaler.api.resource.resources import Object
from podscaler.api.text.json_text import DecodeError

TEXT: Object = {"type": "string"}


def version(name: str, *, storage: bool, **members: Object) -> Object:
    """A served version whose `spec` has these members."""
    spec: Object = {"type": "object", "properties": members}
    schema: Object = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def definition(*versions: Object) -> Object:
    """A definition with these versions."""
    names = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions)}
    return {"metadata": {"name": "gears.example.com"}, "spec": spec, "status": {"acceptedNames": names}}


def test_readers_of_another_version_get_no_defaults_of_it() -> None:
    """Defaults are those of the version that is stored; what another one does not know is left out."""
    own = version("v1", storage=True, a=TEXT, n={"type": "integer", "default": 1})
    other = version("v2", storage=False, a=TEXT, b=TEXT | {"default": "bb"})
    made = records.of(definition(own, other))
    stored = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"a": "x", "b": "y"}}
    read = {face.versions[0].version: face.versions[0].from_storage for face in (made.stored, *made.faces)}
    assert read["v1"]({**stored, "spec": {**stored["spec"]}})["spec"] == {"a": "x", "n": 1}
    assert read["v2"]({**stored, "spec": {**stored["spec"]}})["spec"] == {"a": "x"}


def test_metadata_of_an_embedded_object_is_told_with_its_place() -> None:
    """Who sends something else than metadata learns where."""
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    schema = structural.parse({"type": "object", "properties": {"emb": embedded}})
    with pytest.raises(DecodeError) as refused:
        decoding.decode_embedded_metadata({"emb": {"metadata": "x"}}, schema)
    why = "json: cannot unmarshal string into Go value of type v1.ObjectMeta"
    assert str(refused.value) == f'emb.metadata: Invalid value: "x": {why}'


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        pytest.param({"type": "object", "x-kubernetes-map-type": "atomic"}, "object", id="objects"),
        pytest.param({"type": "array", "items": TEXT}, "array", id="lists"),
        pytest.param(TEXT, "", id="texts"),
    ],
)
def test_sets_of_no_plain_values_are_warned_of(items: Object, kind: str) -> None:
    """Nobody merges them."""
    crd = definition(version("v1", storage=True, a={"type": "array", "items": items, "x-kubernetes-list-type": "set"}))
    why = "is not supported by server-side apply or CEL validation rules"
    wanted = [f'x-kubernetes-list-type: set for items of type "{kind}" {why}'] if kind else []
    assert crd_validation.warnings(crd, None) == wanted


def refused(*, metadata: Object | None = None, schema: Object | None = None, **members: Object) -> list[str]:
    """What is wrong with a new definition."""
    crd = definition(version("v1", storage=True) | members)
    crd["metadata"] |= metadata or {}
    crd["status"]["storedVersions"] = ["v1"]
    crd["spec"]["conversion"] = {"strategy": "None"}
    if schema is not None:
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return [str(fault).removeprefix("spec.validation.openAPIV3Schema") for fault in crd_validation.validate(crd, None)]


def test_what_a_definition_is_named_after_is_judged_as_its_name() -> None:
    """A generated name can never be right, and both are told."""
    wrong = 'must be spec.names.plural+"."+spec.group'
    assert refused(metadata={"generateName": "x-", "name": "x-1"}) == [
        f'metadata.generateName: Invalid value: "x-": {wrong}',
        f'metadata.name: Invalid value: "x-1": {wrong}',
    ]


@pytest.mark.parametrize(
    ("schema", "faults"),
    [
        pytest.param({"$ref": "#/x"}, [".$ref: Forbidden: $ref is not supported"], id="a reference hides the rest"),
        pytest.param(
            {"type": "array"},
            [".items: Required value: must be specified", '.type: Invalid value: "array": must be object at the root'],
            id="a list at the root",
        ),
        pytest.param(
            {"type": "object", "default": {"kind": "Gear"}},
            [".default.apiVersion: Required value"],
            id="a default of the whole object",
        ),
        pytest.param({"type": "object", "default": None}, [], id="no default of the whole object"),
    ],
)
def test_roots_of_schemas(schema: Object, faults: list[str]) -> None:
    """What may not stand at the root is told once, and nothing that follows from it."""
    assert refused(schema=schema) == faults


@pytest.mark.parametrize(
    ("path", "faults"),
    [
        pytest.param(".spec.any.name", [], id="a member of any name"),
        pytest.param(".spec.any['name']", ["is an invalid path: array notation is not allowed"], id="brackets"),
        pytest.param(".spec.none", ["is an invalid path: does not refer to a valid field"], id="unknown"),
    ],
)
def test_paths_of_selectable_fields(path: str, faults: list[str]) -> None:
    """Only members lead to a field, of any name where the schema has any."""
    spec: Object = {"type": "object", "properties": {"any": {"type": "object", "additionalProperties": TEXT}}}
    schema: Object = {"type": "object", "properties": {"spec": spec}}
    found = refused(schema=schema, selectableFields=[{"jsonPath": path}])
    assert found == [f'spec.selectableFields[0].jsonPath: Invalid value: "{path}": {fault}' for fault in faults]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        pytest.param("(?=a)", "invalid or unsupported Perl syntax: `(?=`", id="looking ahead"),
        pytest.param("^(?!x).*$", "invalid or unsupported Perl syntax: `(?!`", id="looking ahead for nothing"),
        pytest.param("(?<=a)b", "invalid named capture: `(?<=a)b`", id="looking back"),
        pytest.param(r"(a)\1", r"invalid escape sequence: `\1`", id="a reference"),
        pytest.param("a++", "invalid nested repetition operator: `++`", id="possessive"),
        pytest.param(r"\++[*+?+(?=]+\(?=", "", id="the same characters as texts"),
        pytest.param(r"\\+(?:a)?", "", id="a group and an escaped backslash"),
    ],
)
def test_patterns_that_only_python_reads_are_refused(pattern: str, fault: str) -> None:
    """A definition that the real server would refuse is not taken."""
    spec: Object = {"type": "object", "properties": {"a": TEXT | {"pattern": pattern}}}
    found = refused(schema=spec)
    assert [text.rpartition("error parsing regexp: ")[2] for text in found] == ([fault] if fault else [])
