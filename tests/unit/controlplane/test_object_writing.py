"""Create and update: what the server sets, what it keeps, what it refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.options import DeleteOptions, Preconditions, UpdateOptions
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import obj

GADGETS = "gadgets.example.com"
STATUS = UpdateOptions(subresource="status")
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def with_spec(**spec: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The change that replaces the spec."""
    return lambda old: {**old, "spec": spec}


def with_metadata(**metadata: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The change that sets these fields of metadata (None: removes them)."""

    def change(old: dict[str, Any]) -> dict[str, Any]:
        merged = {**old["metadata"], **metadata}
        return {**old, "metadata": {key: value for key, value in merged.items() if value is not None}}

    return change


async def refusal(waiting: Any) -> tuple[int, str]:
    """Code and message of the StatusError that an operation ends in."""
    with pytest.raises(StatusError) as refused:
        await waiting
    return refused.value.code, refused.value.message


def entry_of(fields: dict[str, Any], *, time: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """An entry of managedFields for what the server itself wrote."""
    return {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "example.com/v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


async def test_created_objects_are_complete(objects: Objects) -> None:
    """The server sets type, uid, times, generation and version, whatever the client says of them."""
    given = obj("a", size=1)
    given["metadata"] |= {"uid": "mine", "generation": 7, "creationTimestamp": "1999-01-01T00:00:00Z", "selfLink": "/x"}
    given["metadata"] |= {"deletionTimestamp": "1999-01-01T00:00:00Z", "labels": {}, "managedFields": [{}]}
    given["status"] = {"size": 9}
    entry = await objects.create(GADGETS, given)
    uid = entry.uid
    assert entry.decode() == {
        "kind": "Gadget",
        "apiVersion": "example.com/v1",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": uid,
            "resourceVersion": "3",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [
                entry_of(
                    {
                        "f:metadata": {"f:labels": {}},
                        "f:spec": {".": {}, "f:size": {}},
                    }
                )
            ],
        },
        "spec": {"size": 1},
    }
    assert (len(uid), uid[14], uid == "mine") == (36, "4", False)


async def test_names_are_generated(objects: Objects) -> None:
    """generateName gets five characters of upstream's alphabet; a given name wins."""
    one = await objects.create(GADGETS, {"metadata": {"generateName": "web-", "namespace": "default"}, "spec": {}})
    two = await objects.create(
        GADGETS, {"metadata": {"generateName": "web-", "name": "fixed", "namespace": "default"}, "spec": {}}
    )
    assert (one.name[:4], len(one.name), set(one.name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")) == ("web-", 9, True)
    assert two.name == "fixed"


async def test_generated_names_keep_to_63_characters(objects: Objects) -> None:
    """A long prefix is cut."""
    entry = await objects.create(GADGETS, {"metadata": {"generateName": "a" * 100, "namespace": "default"}, "spec": {}})
    assert (entry.name[:58], len(entry.name)) == ("a" * 58, 63)


async def test_taken_generated_names_are_tried_again(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generated name that is taken is replaced; when none is found, the create is a 409 that says so."""
    suffixes = iter(["aaaaa", "aaaaa", "bbbbb"] + ["aaaaa"] * 8)
    monkeypatch.setattr(
        "podscaler.controlplane.registry.generated_names.generated_name",
        lambda prefix, _random: prefix + next(suffixes),
    )
    made = [await objects.create(GADGETS, {"metadata": {"generateName": "x", "namespace": "default"}, "spec": {}})]
    made += [await objects.create(GADGETS, {"metadata": {"generateName": "x", "namespace": "default"}, "spec": {}})]
    refused = await refusal(
        objects.create(GADGETS, {"metadata": {"generateName": "x", "namespace": "default"}, "spec": {}})
    )
    assert [entry.name for entry in made] == ["xaaaaa", "xbbbbb"]
    assert refused == (
        409,
        'gadgets.example.com "xaaaaa" already exists, the server was not able to generate a unique name for the object',
    )


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        pytest.param(obj("there"), 409, 'gadgets.example.com "there" already exists', id="exists"),
        pytest.param(obj("a", namespace="none"), 404, 'namespaces "none" not found', id="no such namespace"),
        pytest.param(
            obj("a", namespace=""), 400, "an empty namespace may not be set during creation", id="without namespace"
        ),
        pytest.param(
            {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "5"}, "spec": {}},
            500,
            "resourceVersion should not be set on objects to be created",
            id="with a version",
        ),
        pytest.param(
            {"metadata": {"name": "a", "namespace": "none", "resourceVersion": "5"}, "spec": {}},
            404,
            'namespaces "none" not found',
            id="with a version in no such namespace",
        ),
        pytest.param(
            {"metadata": {"namespace": "default"}, "spec": {}},
            422,
            'Gadget.example.com "" is invalid: metadata.name: Required value: name or generateName is required',
            id="without name",
        ),
        pytest.param(
            obj("a", size=-1),
            422,
            'Gadget.example.com "a" is invalid: spec.size: Invalid value: -1: must not be negative',
            id="invalid",
        ),
        pytest.param(
            obj("a", namespace="going"),
            403,
            'gadgets.example.com "a" is forbidden: unable to create new content in namespace going because it is being '
            "terminated",
            id="namespace is going away",
        ),
    ],
)
async def test_creates_that_are_refused(objects: Objects, given: dict[str, Any], code: int, message: str) -> None:
    """Creates are refused in upstream's words, and nothing is stored."""
    await objects.create(GADGETS, obj("there"))
    await objects.create("namespaces", obj("going", namespace="", finalizers=["kubernetes"]))
    await objects.delete("namespaces", "", "going")
    before = objects.revision
    assert await refusal(objects.create(GADGETS, given)) == (code, message)
    assert objects.revision == before


async def test_terminating_namespace_names_the_cause(objects: Objects) -> None:
    """The 403 has the cause NamespaceTerminating, which controllers look for."""
    await objects.create("namespaces", obj("going", namespace="", finalizers=["kubernetes"]))
    await objects.delete("namespaces", "", "going")
    with pytest.raises(StatusError) as refused:
        await objects.create(GADGETS, obj("a", namespace="going"))
    assert refused.value.to_status()["details"] == {
        "name": "a",
        "group": "example.com",
        "kind": "gadgets",
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace going is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }


async def test_dry_run_creates_nothing(objects: Objects) -> None:
    """A dry run answers with the object without a resourceVersion; conflicts are found all the same."""
    entry = await objects.create(GADGETS, obj("a"), dry_run=True)
    metadata = entry.decode()["metadata"]
    assert ("uid" in metadata, "resourceVersion" in metadata, objects.find(GADGETS, "default", "a")) == (
        True,
        False,
        None,
    )
    await objects.create(GADGETS, obj("a"))
    assert (await refusal(objects.create(GADGETS, obj("a"), dry_run=True)))[0] == 409


async def test_updates_keep_what_is_the_servers(objects: Objects, clock: VirtualClock) -> None:
    """uid, creationTimestamp and status stay; a changed spec raises the generation, whatever the client says of it."""
    made = await objects.create(GADGETS, obj("a", size=1))
    await objects.update(GADGETS, "default", "a", lambda old: {**old, "status": {"size": 4}}, options=STATUS)
    await clock.advance(60)
    new = {"metadata": {"name": "a", "generation": 99, "creationTimestamp": None}, "spec": {"size": 2}, "status": {}}
    entry = await objects.update(GADGETS, "default", "a", lambda _old: new)
    assert entry.decode() == {
        "kind": "Gadget",
        "apiVersion": "example.com/v1",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": made.uid,
            "resourceVersion": "5",
            "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [
                entry_of({"f:status": {".": {}, "f:size": {}}}) | {"subresource": "status"},
                entry_of({"f:spec": {".": {}, "f:size": {}}}, time="2026-01-01T00:01:00Z"),
            ],
        },
        "spec": {"size": 2},
        "status": {"size": 4},
    }


async def test_status_updates_change_status_and_metadata_only(objects: Objects) -> None:
    """Through `status` the spec stays and the generation with it."""
    await objects.create(GADGETS, obj("a", size=1))
    new = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"size": 9}, "status": {"size": 1}}
    entry = await objects.update(GADGETS, "default", "a", lambda _old: new, options=STATUS)
    found = entry.decode()
    assert (found["spec"], found["status"], found["metadata"]["generation"], found["metadata"]["labels"]) == (
        {"size": 1},
        {"size": 1},
        1,
        {"x": "y"},
    )


async def test_metadata_changes_keep_the_generation(objects: Objects) -> None:
    """Labels are no spec."""
    await objects.create(GADGETS, obj("a"))
    entry = await objects.update(GADGETS, "default", "a", with_metadata(labels={"x": "y"}))
    assert (entry.labels, entry.decode()["metadata"]["generation"]) == ({"x": "y"}, 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda old: old, id="same object"),
        pytest.param(lambda old: dict(reversed(old.items())), id="other order of fields"),
        pytest.param(with_metadata(resourceVersion=None), id="without version"),
        pytest.param(with_metadata(labels={}, annotations={}, finalizers=[]), id="empty maps and lists"),
        pytest.param(with_metadata(generation=5, uid=None, creationTimestamp=None), id="what is the server's"),
    ],
)
async def test_updates_that_change_nothing(
    objects: Objects, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Such a write keeps the resourceVersion."""
    made = await objects.create(GADGETS, obj("a", size=1))
    assert await objects.update(GADGETS, "default", "a", change) is made
    assert objects.revision == made.revision


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param(
            with_metadata(resourceVersion="1"),
            409,
            f'Operation cannot be fulfilled on gadgets.example.com "a": {MODIFIED}',
            id="stale version",
        ),
        pytest.param(
            with_metadata(resourceVersion="abc"),
            500,
            'strconv.ParseUint: parsing "abc": invalid syntax',
            id="no version",
        ),
        pytest.param(
            with_metadata(uid="other"),
            422,
            'Gadget.example.com "a" is invalid: metadata.uid: Invalid value: "other": field is immutable',
            id="other uid",
        ),
        pytest.param(
            with_spec(size=-1),
            422,
            'Gadget.example.com "a" is invalid: spec.size: Invalid value: -1: must not be negative',
            id="invalid",
        ),
    ],
)
async def test_updates_that_are_refused(
    objects: Objects, change: Callable[[dict[str, Any]], dict[str, Any]], code: int, message: str
) -> None:
    """Updates are refused in upstream's words, and nothing changes."""
    made = await objects.create(GADGETS, obj("a", size=1))
    assert await refusal(objects.update(GADGETS, "default", "a", change)) == (code, message)
    assert objects.get(GADGETS, "default", "a") is made


async def test_kinds_may_demand_a_version(objects: Objects) -> None:
    """Where an unconditional update is not allowed, one without resourceVersion is a 422, one with it is not."""
    made = await objects.create("zones", obj("a", namespace=""))
    new = {"metadata": {"name": "a"}, "spec": {"x": 1}}
    assert await refusal(objects.update("zones", "", "a", lambda _old: new)) == (
        422,
        'zones "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )
    new["metadata"]["resourceVersion"] = str(made.revision)
    assert (await objects.update("zones", "", "a", lambda _old: new)).decode()["spec"] == {"x": 1}


async def test_put_for_another_uid_is_a_conflict(objects: Objects) -> None:
    """A PUT's uid is a precondition; the 409 is worded by upstream's storage."""
    made = await objects.create(GADGETS, obj("a"))
    options = UpdateOptions(preconditions=Preconditions(uid="other"))
    assert await refusal(objects.update(GADGETS, "default", "a", with_spec(), options=options)) == (
        409,
        'Operation cannot be fulfilled on gadgets.example.com "a": StorageError: invalid object, Code: 4, Key: '
        "/registry/gadgets/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: other, UID in object meta: {made.uid}",
    )


async def test_missing_objects_are_not_made_by_updates(objects: Objects) -> None:
    """Get, update and delete of what is not there are the same 404."""
    expected = (404, 'gadgets.example.com "a" not found')
    assert await refusal(objects.update(GADGETS, "default", "a", with_spec())) == expected
    assert await refusal(objects.delete(GADGETS, "default", "a")) == expected
    with pytest.raises(StatusError) as refused:
        objects.get(GADGETS, "default", "a")
    assert refused.value.to_status()["details"] == {"name": "a", "group": "example.com", "kind": "gadgets"}


async def test_dry_run_updates_nothing(objects: Objects) -> None:
    """A dry run answers with the changed object under the stored version's resourceVersion."""
    made = await objects.create(GADGETS, obj("a", size=1))
    entry = await objects.update(GADGETS, "default", "a", with_spec(size=2), options=UpdateOptions(dry_run=True))
    found = entry.decode()
    assert (found["spec"], found["metadata"]["resourceVersion"], found["metadata"]["generation"]) == (
        {"size": 2},
        str(made.revision),
        2,
    )
    assert objects.get(GADGETS, "default", "a") is made


async def test_changes_see_a_copy(objects: Objects) -> None:
    """A change that fails half-way leaves the stored object alone."""

    def spoil(old: dict[str, Any]) -> dict[str, Any]:
        old["spec"]["size"] = 99
        raise StatusError("no", code=400)

    await objects.create(GADGETS, obj("a", size=1))
    assert await refusal(objects.update(GADGETS, "default", "a", spoil)) == (400, "no")
    assert objects.get(GADGETS, "default", "a").decode()["spec"] == {"size": 1}


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ("999", 504, "Timeout: Too large resource version: 999, current: 3"),
        ("x", 500, 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'),
    ],
)
async def test_get_checks_the_version(objects: Objects, version: str, code: int, message: str) -> None:
    """Any version up to now gives the newest object; a later one, and no number, are refused."""
    made = await objects.create(GADGETS, obj("a"))
    assert objects.get(GADGETS, "default", "a", resource_version="0") is made
    with pytest.raises(StatusError) as refused:
        objects.get(GADGETS, "default", "a", resource_version=version)
    assert (refused.value.code, refused.value.message) == (code, message)


async def test_cluster_scoped_objects_have_no_namespace(objects: Objects) -> None:
    """A namespace given for a cluster-scoped kind is dropped."""
    entry = await objects.create("zones", obj("a"))
    assert (entry.key, objects.get("zones", "", "a") is entry) == ("a", True)


async def test_new_object_under_an_old_name_is_another(objects: Objects) -> None:
    """Deleted and created again, an object has another uid and a precondition tells them apart."""
    old = await objects.create(GADGETS, obj("a"))
    await objects.delete(GADGETS, "default", "a")
    new = await objects.create(GADGETS, obj("a"))
    options = DeleteOptions(preconditions=Preconditions(uid=old.uid))
    assert new.uid != old.uid
    assert (await refusal(objects.delete(GADGETS, "default", "a", options=options)))[0] == 409
