"""The record of RuntimeClass (node.k8s.io/v1): what running a pod of it costs and where it can run.

Source: the API reference of node.k8s.io/v1.
"""

from typing import Any

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import metadata
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a RuntimeClass to be stored."""
    handler = new.get("handler", "")
    if old is not None:
        fault = invalid("handler", handler, "field is immutable")
        return [] if handler == old.get("handler", "") else [fault]
    found = [] if handler else [required("handler")]
    found += [invalid("handler", handler, text) for text in names.dns_label_faults(handler)] if handler else []
    selector = (new.get("scheduling") or {}).get("nodeSelector") or {}
    return found + metadata.label_faults(selector, "scheduling.nodeSelector")


def _row(runtime_class: Object, now_ns: int) -> list[Any]:
    name, handler = runtime_class["metadata"].get("name", ""), runtime_class.get("handler", "")
    return [name, handler, printing.created_age(runtime_class, now_ns)]


RESOURCE = Resource(
    group="node.k8s.io",
    plural="runtimeclasses",
    singular="runtimeclass",
    kind="RuntimeClass",
    versions=(Version("v1", "node/v1.RuntimeClass"),),
    storage_version="v1",
    namespaced=False,
    strategy=Strategy(validate=faults, allows_unconditional_update=False),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the runtime class."),
            Column("Handler", description="What runs its pods."),
            Column("Age", description="Time since the runtime class was created."),
        ),
        row=_row,
    ),
)
