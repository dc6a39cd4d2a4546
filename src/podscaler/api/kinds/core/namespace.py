"""The record of Namespace (core/v1).

Source: golden captures; the API reference of core/v1.
"""

from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

NAME_LABEL = "kubernetes.io/metadata.name"


def fill(namespace: Object) -> None:
    """The label with its own name, and the phase of one that says nothing, in place."""
    status = namespace.setdefault("status", None) or {}
    namespace["status"] = {**status, "phase": status.get("phase") or "Active"}
    meta = namespace.setdefault("metadata", {})
    if name := meta.get("name"):
        meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: name}


def _prepare_create(new: Object) -> None:
    fill(new)  # the name may have been generated after defaulting
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    new["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
    new["status"] = {"phase": "Active"}


def _prepare_update(new: Object, old: Object) -> None:
    status_subresource.keep_status(new, old)
    new["spec"] = {**(new.get("spec") or {}), "finalizers": (old.get("spec") or {}).get("finalizers") or []}


def _prepare_finalize(new: Object, old: Object) -> None:
    """Through `finalize` only the finalizers of spec can change."""
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    status_subresource.keep_status(new, old)
    new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers}


def _prepare_delete(namespace: Object) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"
    namespace["metadata"].pop("deletionGracePeriodSeconds", None)  # upstream sets none on namespaces


def _is_held(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a namespace: its phase says whether it is being deleted."""
    phase = (new.get("status") or {}).get("phase", "")
    is_going = old is not None and "deletionTimestamp" in old["metadata"]
    wanted, when = ("Terminating", "is not") if is_going else ("Active", "is")
    if phase in ("", wanted):
        return []
    return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` {when} empty")]


def _row(namespace: Object, now_ns: int) -> list[Any]:
    phase = (namespace.get("status") or {}).get("phase", "")
    return [namespace["metadata"].get("name", ""), phase, printing.created_age(namespace, now_ns)]


RESOURCE = Resource(
    group="",
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    versions=(Version("v1", "core/v1.Namespace", default=fill),),
    storage_version="v1",
    namespaced=False,
    short_names=("ns",),
    has_status=True,
    fields=lambda namespace: {"status.phase": (namespace.get("status") or {}).get("phase", "")},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=status_subresource.keep_spec,
        prepare_delete=_prepare_delete,
        validate_status=status_faults,
        is_held=_is_held,
        prepare_subresource_update={"finalize": _prepare_finalize},
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the namespace."),
            Column("Status", description="Active, or Terminating while its objects are being deleted."),
            Column("Age", description="Time since the namespace was created."),
        ),
        row=_row,
    ),
)
