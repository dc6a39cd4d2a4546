"""The catalog as a whole: what must hold for every kind."""

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.resource.resources import Resource
from podscaler.api.schema import schema

_EACH = pytest.mark.parametrize("resource", catalog.RESOURCES, ids=lambda each: each.key)


def test_keys_are_unique() -> None:
    """A key names one kind, and finds it."""
    keys = [resource.key for resource in catalog.RESOURCES]
    assert len(set(keys)) == len(keys)
    assert [catalog.get(key).key for key in keys] == keys


@_EACH
def test_types_are_known(resource: Resource) -> None:
    """Every version's message is in the schema, and the storage version is one of them."""
    assert [schema.find_message(version.message) is not None for version in resource.versions] == [True] * len(
        resource.versions
    )
    assert resource.storage_version in [version.version for version in resource.versions]


@_EACH
def test_rows_fit_their_columns(resource: Resource) -> None:
    """A table shows an object that has nothing but what its kind defaults, with one cell a column."""
    obj = {"metadata": {"name": "x"}}
    version = resource.versions[0]
    version.default(obj)
    stored = version.to_storage(obj)
    assert len(resource.printer.row(stored, 0)) == len(resource.printer.columns)
    assert [column.description == "" for column in resource.printer.columns] == [False] * len(resource.printer.columns)


@_EACH
def test_defaulting_twice_changes_nothing(resource: Resource) -> None:
    """Defaults are filled in once and for all."""
    for version in resource.versions:
        once, twice = ({"metadata": {"name": "x"}} for _ in range(2))
        version.default(once)
        version.default(twice)
        version.default(twice)
        assert once == twice


def test_second_faces_are_faces_of_stored_kinds() -> None:
    """A kind that is stored as another one names a kind that is stored."""
    faces = [resource for resource in catalog.RESOURCES if resource.stored_as]
    assert [(face.key, catalog.get(face.storage_key).stored) for face in faces] == [("events.events.k8s.io", True)]
