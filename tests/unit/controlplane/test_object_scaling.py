"""The scale subresource."""

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.options import Preconditions, UpdateOptions
from podscaler.testing.kinds import obj

GADGETS = "gadgets.example.com"


async def test_scale_shows_replicas_and_selector(objects: Objects) -> None:
    """A Scale has the owner's identity without its labels, replicas wanted and seen, and the selector as text."""
    made = await objects.create(GADGETS, obj("a", labels={"x": "y"}, size=3, selector="app=a"))
    assert objects.get_scale(GADGETS, "default", "a") == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": made.uid,
            "resourceVersion": str(made.revision),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 0, "selector": "app=a"},
    }


async def test_zero_replicas_and_no_selector_are_left_out(objects: Objects) -> None:
    """spec.replicas is omitted when 0, status.selector when empty; status.replicas never."""
    await objects.create(GADGETS, obj("a"))
    scale = objects.get_scale(GADGETS, "default", "a")
    assert (scale["spec"], scale["status"]) == ({}, {"replicas": 0})


async def test_update_sets_replicas_only(objects: Objects) -> None:
    """A new number raises the owner's generation; nothing else of the Scale counts."""
    await objects.create(GADGETS, obj("a", size=3))
    new = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"replicas": 5}, "status": {"replicas": 99}}
    scale = await objects.update_scale(GADGETS, "default", "a", lambda _old: new)
    stored = objects.get(GADGETS, "default", "a").decode()
    assert (scale["spec"], scale["status"]) == ({"replicas": 5}, {"replicas": 0})
    assert (stored["spec"], stored["metadata"]["generation"], "labels" in stored["metadata"]) == ({"size": 5}, 2, False)


@pytest.mark.parametrize(
    ("new", "code", "message"),
    [
        pytest.param(
            {"metadata": {"name": "a"}, "spec": {"replicas": -1}},
            422,
            'Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
            id="negative",
        ),
        pytest.param(
            {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 1}},
            409,
            'Operation cannot be fulfilled on gadgets.example.com "a": the object has been modified; please apply your '
            "changes to the latest version and try again",
            id="stale version",
        ),
    ],
)
async def test_updates_that_are_refused(objects: Objects, new: dict[str, object], code: int, message: str) -> None:
    """Negative replicas and stale versions are refused in upstream's words."""
    await objects.create(GADGETS, obj("a", size=3))
    with pytest.raises(StatusError) as refused:
        await objects.update_scale(GADGETS, "default", "a", lambda _old: new)
    assert (refused.value.code, refused.value.message) == (code, message)


async def test_uid_is_a_precondition(objects: Objects) -> None:
    """A Scale of another object of that name is a 409."""
    await objects.create(GADGETS, obj("a", size=3))
    options = UpdateOptions(preconditions=Preconditions(uid="other"))
    with pytest.raises(StatusError) as refused:
        await objects.update_scale(GADGETS, "default", "a", lambda old: old, options=options)
    assert refused.value.code == 409


async def test_same_replicas_keep_the_version(objects: Objects) -> None:
    """Setting the number that is there changes nothing."""
    made = await objects.create(GADGETS, obj("a", size=3))
    scale = await objects.update_scale(GADGETS, "default", "a", lambda old: old)
    assert scale["metadata"]["resourceVersion"] == str(made.revision)


async def test_kinds_without_scale_have_none(objects: Objects) -> None:
    """Asking for the scale of a kind that has none is a mistake of ours."""
    await objects.create("zones", obj("a", namespace=""))
    with pytest.raises(KeyError):
        objects.get_scale("zones", "", "a")
