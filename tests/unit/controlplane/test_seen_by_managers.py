"""What managers of fields see of parts that the kind overrules, as the real server records it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import Author, UpdateOptions
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
Send = Callable[..., Any]
NOTE = "deprecated.daemonset.template.generation"
SETS, AUTOSCALERS = "daemonsets.apps", "horizontalpodautoscalers.autoscaling"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Objects]:
    """All kinds."""
    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as opened:
        yield opened.objects


def sent(key: str, obj: Object) -> Object:
    """An object as a client's body becomes it."""
    version = catalog.get(key).versions[0]
    version.default(obj)
    return version.to_storage(obj)


def owners(entry: Entry, part: str) -> dict[str, Object]:
    """What each manager owns of a part."""
    entries = entry.decode()["metadata"]["managedFields"]
    return {each["manager"]: each["fieldsV1"][part] for each in entries if part in each["fieldsV1"]}


def annotated(value: str | None) -> Object:
    """A DaemonSet that says how often its template changed."""
    daemon_set = build.daemon_set()
    notes = {"annotations": {NOTE: value}} if value is not None else {}
    daemon_set["metadata"] = {"name": "agent", "namespace": "default", **notes}
    return sent(SETS, daemon_set)


@pytest.mark.parametrize(
    ("first", "stored"),
    [(None, "1"), ("0", "1"), ("-3", "1"), ("5", "5")],
    ids=["left out", "zero", "negative", "given"],
)
async def test_the_count_of_a_new_daemon_set(served: Objects, first: str | None, stored: str) -> None:
    """It begins at one, or where the client says."""
    made = await served.create(SETS, annotated(first), author=Author("maker"))
    assert made.decode()["metadata"]["annotations"] == {NOTE: stored}


async def test_who_leaves_the_count_out_overwrites_it_in_vain(served: Objects) -> None:
    """The stored count stays, the field has a new owner, and a second such update changes nothing."""
    made = await served.create(SETS, annotated(None), author=Author("maker"))
    options = UpdateOptions("status", author=Author("other"))
    name = made.name
    after = await served.update(SETS, "default", name, lambda _: annotated(None), options=options)
    again = await served.update(SETS, "default", name, lambda _: annotated(None), options=options)
    assert after.decode()["metadata"]["annotations"] == {NOTE: "1"}
    assert owners(after, "f:metadata")["other"] == {"f:annotations": {f"f:{NOTE}": {}}}
    assert (after.revision > made.revision, again.revision) == (True, after.revision)


async def test_who_sends_no_metrics_owns_them_once(served: Objects) -> None:
    """An empty list is another value than none: the first update that has one is stored, for who owns the field."""

    def autoscaler() -> Object:
        spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5}
        metadata = {"name": "web", "namespace": "default"}
        return sent(AUTOSCALERS, {"metadata": metadata, "spec": spec, "status": {"currentMetrics": []}})

    made = await served.create(AUTOSCALERS, autoscaler(), author=Author("maker"))
    options = UpdateOptions("status", author=Author("maker"))
    after = await served.update(AUTOSCALERS, "default", "web", lambda _: autoscaler(), options=options)
    again = await served.update(AUTOSCALERS, "default", "web", lambda _: autoscaler(), options=options)
    assert owners(after, "f:status") == {"maker": {"f:currentMetrics": {}}}
    assert after.decode()["status"] == {"desiredReplicas": 0, "currentMetrics": None}
    assert (after.revision > made.revision, again.revision) == (True, after.revision)
