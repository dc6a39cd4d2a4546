"""The record of ControllerRevision (apps/v1): one state of a StatefulSet's or DaemonSet's template.

Source: the API reference of apps/v1.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ControllerRevision to be stored; its data never change."""
    data, revision = new.get("data"), new.get("revision", 0)
    found = [required("data", "data is mandatory")] if data is None and old is None else []
    if old is not None and not semantics.same(data, old.get("data")):
        found.append(invalid("data", data, "field is immutable"))
    if revision < 0:
        found.append(invalid("revision", revision, workload_spec.NOT_NEGATIVE))
    return found


def _controller(revision: Object) -> str:
    owners = revision["metadata"].get("ownerReferences") or []
    owner = next((each for each in owners if each.get("controller")), None)
    if owner is None:
        return printing.NONE
    group = owner["apiVersion"].rpartition("/")[0]
    kind = owner["kind"].lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"


def _row(revision: Object, now_ns: int) -> list[Any]:
    name = revision["metadata"].get("name", "")
    return [name, _controller(revision), revision.get("revision", 0), printing.created_age(revision, now_ns)]


RESOURCE = Resource(
    group="apps",
    plural="controllerrevisions",
    singular="controllerrevision",
    kind="ControllerRevision",
    versions=(Version("v1", "apps/v1.ControllerRevision"),),
    storage_version="v1",
    strategy=Strategy(validate=faults),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the revision, unique within its namespace."),
            Column("Controller", description="Whose template it keeps."),
            Column("Revision", description="Its place in the history; the highest is the newest."),
            Column("Age", description="Time since the revision was created."),
        ),
        row=_row,
    ),
)
