"""Whom a change concerns: keepers, what they keep, and what nobody keeps."""

from typing import Any

import pytest

from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.registry.registry import ObjectEvent

Object = dict[str, Any]


class Listed:
    """As much of a registry as the indexes are built from."""

    def __init__(self, **objects: list[Object]) -> None:
        self._objects = objects

    def list(self, resource: str) -> list[Object]:
        return self._objects[resource]


def keeper(name: str, **labels: str) -> Object:
    """Something that keeps what carries these labels."""
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": {"matchLabels": labels}}}


def kept(name: str, owner: tuple[str, str] | None = None, **labels: str) -> Object:
    """Something with labels, kept by (kind, name) or by nobody."""
    metadata: Object = {"name": name, "namespace": "shop", "labels": labels}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}]
    return {"metadata": metadata}


@pytest.fixture
def keeping() -> OwnerIndex:
    """Two keepers, `a` of app=a and `b` of app=b, primed, and one orphan of `a`."""
    registry = Listed(sets=[keeper("a", app="a"), keeper("b", app="b")], pods=[kept("lone", app="a")])
    made = OwnerIndex(
        registry,  # type: ignore[arg-type]  # what it reads of one
        owner_resource="sets",
        owner_kind="Set",
        dependent_resource="pods",
    )
    assert made.prime() == [("shop", "a"), ("shop", "b")]
    return made


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        pytest.param(
            ObjectEvent("MODIFIED", kept("p", ("Set", "b"), app="a")), [("shop", "b")], id="kept: its controller"
        ),
        pytest.param(ObjectEvent("DELETED", kept("p", ("Set", "b"))), [("shop", "b")], id="kept and gone: still"),
        pytest.param(ObjectEvent("ADDED", kept("p", ("Other", "b"), app="b")), [], id="kept by another kind: nobody"),
        pytest.param(ObjectEvent("ADDED", kept("p", app="b")), [("shop", "b")], id="an orphan: who may adopt it"),
        pytest.param(ObjectEvent("ADDED", kept("p", app="c")), [], id="an orphan that nobody selects"),
        pytest.param(ObjectEvent("DELETED", kept("p", app="b")), [], id="an orphan that is gone: nobody"),
    ],
)
def test_whom_a_change_of_what_is_kept_concerns(
    keeping: OwnerIndex, change: ObjectEvent, concerned: list[tuple[str, str]]
) -> None:
    """The controller, or those whose selector matches."""
    assert list(keeping.index_dependent(change)) == concerned


def test_orphans_are_known_by_their_labels(keeping: OwnerIndex) -> None:
    """What a keeper may adopt: there from the start, gone once somebody keeps it."""
    selector = selection.object_selector(keeper("a", app="a"))
    assert keeping.orphan_names("shop", selector) == ["lone"]
    keeping.index_dependent(ObjectEvent("MODIFIED", kept("lone", ("Set", "a"), app="a")))
    assert keeping.orphan_names("shop", selector) == []


def test_a_keeper_that_is_gone_adopts_nothing(keeping: OwnerIndex) -> None:
    """Its own change concerns it once more; after that it is not asked."""
    assert list(keeping.index_owner(ObjectEvent("DELETED", keeper("b", app="b")))) == [("shop", "b")]
    assert list(keeping.index_dependent(ObjectEvent("ADDED", kept("p", app="b")))) == []
    assert keeping.keys() == [("shop", "a")]
