"""Who owns what after creates, updates and applies: entries as they are stored, conflicts as they are refused."""

from typing import Any

import pytest

from podscaler.api.managed_fields import (
    applying,
    conflicts,
    last_applied,
    managed_kinds,
    managers,
    message_types,
    structural_types,
    updating,
)
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.managed_fields.managed_kinds import Application, ManagedKind
from podscaler.api.managed_fields.managers import Entries
from podscaler.api.managed_fields.scale_fields import ScaleFields
from podscaler.api.managed_fields.updating import Versions
from podscaler.base.errors import StatusError

Object = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"
ANY = structural_types.of_kind(
    {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
)
AUTOSCALER = message_types.of_message("autoscaling/v2.HorizontalPodAutoscaler")


def _type(version: str) -> FieldType | None:
    return {"v1": ANY, "v2": ANY}.get(version)


def _converted(obj: Object, version: str, wanted: str) -> Object:
    """v2 calls `size` what v1 calls `count`."""
    names = {"v1": "count", "v2": "size"}
    spec = {names[wanted] if name == names[version] else name: value for name, value in obj.get("spec", {}).items()}
    return {**obj, "spec": spec} if "spec" in obj else obj


KIND = ManagedKind(Versions(_type, _converted, {}), lambda _version: {})


def entry(name: str, operation: str = "Apply", *, version: str = "v1", time: str = NOW, **fields: Any) -> Object:
    """An entry for fields of the spec."""
    whole: Object = {"manager": name, "operation": operation, "apiVersion": version, "time": time}
    whole |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {f"f:{each}": node for each, node in fields.items()}}}
    return {key: value for key, value in whole.items() if value}


def applied(
    live: Object | None, name: str, *, version: str = "v1", now: str = NOW, force: bool = False, **spec: Any
) -> Object:
    """The object after `name` applied such a spec."""
    before = dict(live) if live else None
    entries: Entries = []
    if before is not None:
        before["metadata"] = dict(before["metadata"])
        entries = before["metadata"].pop("managedFields", [])
    return managed_kinds.apply(KIND, before, entries, Application({"spec": spec}, name, version, now, force))


def entries_of(obj: Object) -> Entries:
    """What its metadata says."""
    found: Entries = obj["metadata"]["managedFields"]
    return found


def test_who_applies_owns() -> None:
    """A configuration makes the object, and its fields are its manager's."""
    obj = applied(None, "a", size=1)
    assert obj == {"spec": {"size": 1}, "metadata": {"managedFields": [entry("a", size={})]}}


def test_applying_the_same_again_changes_nothing() -> None:
    """Not even the time."""
    obj = applied(None, "a", size=1)
    assert applied(obj, "a", now=LATER, size=1) == obj


def test_fields_may_be_shared() -> None:
    """Who applies the value that is there shares it, and has no time: nothing changed."""
    obj = applied(applied(None, "a", size=1), "b", now=LATER, size=1)
    assert entries_of(obj) == [entry("b", time="", size={}), entry("a", size={})]


def test_what_is_shared_stays_until_nobody_has_it() -> None:
    """A field goes with its last owner."""
    shared = applied(applied(None, "a", size=1, colour="red"), "b", size=1)
    once = applied(shared, "a", now=LATER, colour="red")
    twice = applied(once, "b", now=NOW)
    assert [once["spec"], twice["spec"]] == [{"size": 1, "colour": "red"}, {"colour": "red"}]
    assert entries_of(twice) == [entry("a", colour={}), entry("b")]


def test_fields_of_updaters_stay() -> None:
    """What somebody else wrote since is not removed by who applied it before."""
    obj = applied(None, "a", size=1, colour="red")
    live = {"spec": {"size": 2, "colour": "red"}, "metadata": {}}
    old = {"spec": {"size": 1, "colour": "red"}, "metadata": {}}
    written = managed_kinds.entries_after_update(KIND, old, live, entries_of(obj), KIND.writer("u", "v1", LATER))
    assert written == [entry("a", colour={}), entry("u", "Update", time=LATER, size={})]
    after = applied({**live, "metadata": {"managedFields": written}}, "a", now=LATER, colour="red")
    assert (after["spec"], entries_of(after)) == (live["spec"], written)


@pytest.mark.parametrize(
    ("first", "second", "message", "fields"),
    [
        pytest.param(
            {"size": 1},
            {"size": 2},
            'Apply failed with 1 conflict: conflict with "a": .spec.size',
            [".spec.size"],
            id="one",
        ),
        pytest.param(
            {"size": 1, "colour": "red"},
            {"size": 2, "colour": "blue"},
            'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.colour\n- .spec.size',
            [".spec.colour", ".spec.size"],
            id="two",
        ),
    ],
)
def test_conflicts(first: Object, second: Object, message: str, fields: list[str]) -> None:
    """Who would change others' fields is refused, with each field."""
    obj = applied(None, "a", **first)
    with pytest.raises(StatusError) as caught:
        applied(obj, "b", **second)
    causes = [(cause.reason, cause.field) for cause in caught.value.causes]
    assert (caught.value.code, caught.value.reason, caught.value.message) == (409, "Conflict", message)
    assert causes == [("FieldManagerConflict", field) for field in fields]


def test_force_takes_fields() -> None:
    """Who forces owns the fields from then on, alone."""
    obj = applied(applied(None, "a", size=1, colour="red"), "b", now=LATER, force=True, size=2)
    assert obj["spec"] == {"size": 2, "colour": "red"}
    assert entries_of(obj) == [entry("a", colour={}), entry("b", time=LATER, size={})]


def test_managers_in_several_versions_meet() -> None:
    """A field that is called otherwise in another version is the same field."""
    obj = applied(None, "a", version="v2", size=1)
    other = {"spec": {"count": 1}, "metadata": obj["metadata"]}
    with pytest.raises(StatusError) as caught:
        applied(other, "b", version="v1", count=2)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "a": .spec.size'
    forced = applied(other, "b", version="v1", force=True, count=2)
    assert entries_of(forced) == [entry("b", count={})]


def test_a_manager_may_change_its_version() -> None:
    """What it applied in the older version and does not apply now goes."""
    obj = applied(None, "a", version="v1", count=1, colour="red")
    obj["spec"] = {"size": 1, "colour": "red"}
    after = applied(obj, "a", version="v2", now=LATER, colour="red")
    assert after["spec"] == {"colour": "red"}
    assert entries_of(after) == [entry("a", version="v2", time=LATER, colour={})]


def test_managers_of_lost_versions_are_forgotten() -> None:
    """A version that is not served any more has no owners."""
    old, new = {"spec": {"size": 1}}, {"spec": {"size": 2}}
    before = [entry("x", "Update", version="v0", size={}), entry("y", "Update", colour={})]
    after = managed_kinds.entries_after_update(KIND, old, new, before, KIND.writer("u", "v1", LATER))
    assert after == [entry("y", "Update", colour={}), entry("u", "Update", time=LATER, size={})]


def test_untracked_objects_have_a_first_owner() -> None:
    """All that was there before the first apply belongs to one manager."""
    live: Object = {"spec": {"size": 1, "colour": "red"}, "metadata": {"name": "x"}}
    with pytest.raises(StatusError) as caught:
        applied(live, "a", size=2)
    expected = 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .spec.size'
    assert caught.value.message == expected


def test_configurations_must_fit() -> None:
    """What the type does not know is refused before anything else."""
    kind = ManagedKind(Versions({"v2": AUTOSCALER}.get, _converted, {}), lambda _version: {})
    with pytest.raises(applying.ConfigurationError, match=r"^\.spec\.zz: field not declared in schema$"):
        managed_kinds.apply(kind, None, [], Application({"spec": {"zz": 1}}, "a", "v2", NOW))


def test_the_server_owns_its_metadata() -> None:
    """Name, uid, times and versions have no owner; labels have."""
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}}}
    found = managed_kinds.entries_after_create(KIND, obj, None, KIND.writer("c", "v1", NOW))
    assert found[0]["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        pytest.param(None, ["live"], id="nothing"),
        pytest.param([], None, id="an empty list resets"),
        pytest.param([{}], None, id="an empty entry resets"),
        pytest.param([entry("x", size={})], ["x"], id="others"),
        pytest.param([entry("x", "Patch", size={})], ["live"], id="an unknown operation"),
        pytest.param([entry("x", version="", size={})], ["live"], id="without version"),
        pytest.param([{**entry("x"), "fieldsType": "F"}], ["live"], id="an unknown form"),
        pytest.param([{**entry("x"), "fieldsV1": {"fx": {}}}], ["live"], id="no steps"),
        pytest.param([{**entry("x"), "fieldsV1": {"f:x": []}}], ["live"], id="no set"),
    ],
)
def test_clients_may_edit_entries(sent: list[Any] | None, names: list[str] | None) -> None:
    """What can be understood counts; what cannot is as if nothing was sent."""
    found = managed_kinds.entries_before_update([entry("live", size={})], sent)
    assert (found and [each["manager"] for each in found]) == names


def test_many_updaters_become_one() -> None:
    """Beyond ten, the oldest of a version are merged, with the newer time."""
    found = {
        managers.updater(f"m{number:02}", "v1", ""): managers.ManagedFields({f"f:{number}": {}}, "v1", f"{number:02}")
        for number in range(12)
    }
    capped = updating.cap_updaters(found)
    ancient = capped[managers.updater("ancient-changes", "v1", "")]
    assert (len(capped), ancient.time, sorted(ancient.fields)) == (10, "02", ["f:0", "f:1", "f:2"])


def test_conflicts_name_subresources() -> None:
    """A conflict tells through which subresource the other wrote."""
    owner = managers.updater("kubectl-edit", "apps/v1", "scale")
    error = conflicts.status_error(conflicts.ConflictsError({owner: {"f:spec": {"f:replicas": {}}}}))
    assert error.causes[0].message == 'conflict with "kubectl-edit" with subresource "scale" using apps/v1'


def test_client_side_apply_hands_over() -> None:
    """kubectl may take what its annotation has and nobody changed, and the annotation follows."""
    config = {"apiVersion": "v1", "spec": {"size": 1}}
    annotated: Object = {"annotations": {last_applied.ANNOTATION: '{"apiVersion":"v1","spec":{"size":1,"old":2}}'}}
    live = {"apiVersion": "v1", "spec": {"size": 1, "old": 3}, "metadata": annotated}
    assert last_applied.unchanged_fields(live, "v1", ANY) == {"f:apiVersion": {}, "f:spec": {"f:size": {}}}
    last_applied.update_annotation(live, config)
    assert live["metadata"]["annotations"] == {
        last_applied.ANNOTATION: '{"apiVersion":"v1","spec":{"size":1}}\n',
    }


SCALED = ScaleFields(frozenset({"apps/v1"}), ("f:spec", "f:replicas"), "apps/v1")


def test_scales_know_who_owns_replicas() -> None:
    """Of an object's entries those that own the replicas, in the version of Scale."""
    parent = [
        entry("a", version="apps/v1", replicas={}, selector={}),
        entry("b", version="apps/v1", selector={}),
        entry("c", version="apps/v0", replicas={}),
    ]
    assert SCALED.of_scale(parent) == [entry("a", version="autoscaling/v1", replicas={})]


def test_scales_take_replicas() -> None:
    """Who writes the Scale owns the replicas of the object, without a time; who had them keeps the rest."""
    parent = [entry("a", version="apps/v1", replicas={}, selector={})]
    scale = [entry("hpa", "Update", version="autoscaling/v1", replicas={}) | {"subresource": "scale"}]
    expected = entry("hpa", "Update", version="apps/v1", time="", replicas={}) | {"subresource": "scale"}
    assert SCALED.of_parent(parent, scale) == [entry("a", version="apps/v1", selector={}), expected]
    assert SCALED.of_parent(parent, SCALED.of_scale(parent)) == parent
