"""Validation of metadata, the same for every kind."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.resource import metadata

_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}


def _faults(new: dict[str, Any], old: dict[str, Any] | None = None, key: str = "pods") -> list[str]:
    stored = None if old is None else {"metadata": old}
    return [str(each) for each in metadata.validate_metadata(catalog.get(key), {"metadata": new}, stored)]


@pytest.mark.parametrize(
    ("meta", "faults"),
    [
        pytest.param({"name": "web.v1"}, [], id="fine"),
        pytest.param({}, ["metadata.name: Required value: name or generateName is required"], id="no name"),
        pytest.param({"name": "Web"}, [f'metadata.name: Invalid value: "Web": {_SUBDOMAIN}'], id="capital"),
        pytest.param({"name": "a" * 253}, [], id="longest"),
        pytest.param(
            {"name": "a" * 254},
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
            id="too long",
        ),
        pytest.param({"name": "web-12345", "generateName": "web-"}, [], id="generated"),
        pytest.param({"name": "a--12345", "generateName": "a--"}, [], id="prefix of dashes"),
        pytest.param(
            {"name": "w_12345", "generateName": "w_"},
            [
                f'metadata.generateName: Invalid value: "w_": {_SUBDOMAIN}',
                f'metadata.name: Invalid value: "w_12345": {_SUBDOMAIN}',
            ],
            id="bad prefix",
        ),
    ],
)
def test_names(meta: dict[str, Any], faults: list[str]) -> None:
    """A new object has a name, its own or a generated one, that fits its kind."""
    assert _faults(meta) == faults


def test_namespaces_have_no_dots() -> None:
    """Names of namespaces become labels of DNS names."""
    assert [_faults({"name": "a.b"}, key=key) == [] for key in ("configmaps", "namespaces")] == [True, False]


@pytest.mark.parametrize(
    ("meta", "faults"),
    [
        pytest.param({"labels": {"a/b": "C_1", "x": ""}, "annotations": {"UP/Any": "thing!"}}, [], id="fine"),
        pytest.param(
            {"labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
            id="long value",
        ),
        pytest.param(
            {"annotations": {"/x": ""}},
            ['metadata.annotations: Invalid value: "/x": prefix part must be non-empty'],
            id="empty prefix",
        ),
        pytest.param({"annotations": {"a": "x" * (256 * 1024 - 1)}}, [], id="annotations at the limit"),
        pytest.param(
            {"annotations": {"a": "x" * (256 * 1024)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations over the limit",
        ),
        pytest.param({"finalizers": ["orphan", "example.com/x"]}, [], id="finalizers"),
        pytest.param(
            {"finalizers": ["mine"]},
            [
                'metadata.finalizers[0]: Invalid value: "mine": '
                "name is neither a standard finalizer name nor is it fully qualified"
            ],
            id="unqualified finalizer",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
            id="both ways of deletion",
        ),
    ],
)
def test_maps_and_finalizers(meta: dict[str, Any], faults: list[str]) -> None:
    """Labels, annotations and finalizers follow upstream's rules, with its words."""
    assert _faults({"name": "web", **meta}) == faults


@pytest.mark.parametrize(
    ("owners", "faults"),
    [
        pytest.param([_OWNER, {**_OWNER, "uid": "v", "controller": True}], [], id="one controller"),
        pytest.param(
            [{"apiVersion": "v1"}],
            [
                f"metadata.ownerReferences[0].{part}: Required value: must not be empty"
                for part in ("kind", "name", "uid")
            ],
            id="parts missing",
        ),
        pytest.param(
            [{**_OWNER, "apiVersion": "apps/"}],
            ['metadata.ownerReferences[0].apiVersion: Invalid value: "apps/": must be <group>/<version> or <version>'],
            id="no version",
        ),
        pytest.param(
            [{**_OWNER, "apiVersion": "v1", "kind": "Event"}],
            [
                'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"web","uid":"u"}'
                ": /v1, Kind=Event is disallowed from being an owner"
            ],
            id="events own nothing",
        ),
    ],
)
def test_owners(owners: list[dict[str, Any]], faults: list[str]) -> None:
    """Owner references are complete, and at most one is the controller."""
    assert _faults({"name": "web", "ownerReferences": owners}) == faults


@pytest.mark.parametrize(
    ("new", "old", "faults"),
    [
        pytest.param({"uid": "1", "labels": {"a": "b"}}, {"uid": "1"}, [], id="labels may change"),
        pytest.param({"uid": "2"}, {"uid": "1"}, ['metadata.uid: Invalid value: "2": field is immutable'], id="uid"),
        pytest.param({"name": "B!"}, {"name": "B!"}, [], id="an old name is not judged again"),
        pytest.param(
            {"finalizers": ["a.b/c", "a.b/d"], "deletionTimestamp": "t"},
            {"finalizers": ["a.b/c"], "deletionTimestamp": "t"},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                'found new finalizers []string{"a.b/d"}'
            ],
            id="finalizer added while deleting",
        ),
        pytest.param({"finalizers": ["a.b/c"]}, {}, [], id="finalizer added before"),
    ],
)
def test_changes(new: dict[str, Any], old: dict[str, Any], faults: list[str]) -> None:
    """What identifies an object stays; a dying object gets no new finalizers."""
    assert _faults(new, old) == faults
