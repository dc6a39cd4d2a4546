"""Definitions of small made-up kinds for tests of the API server, independent of the rules of real kinds.

`gadgets.example.com` has spec, status, scale (`spec.size`, which is validated), and a default of the selectable field
`spec.colour`; `runners.example.com` has a grace period while `spec.running` is set; `zones` is cluster-scoped, orphans
its dependents, and needs a resourceVersion in updates; `namespaces` is Namespace without validation.
"""

from typing import Any

from podscaler.api.kinds.core import namespace
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource.resources import Object, Printer, Resource, ScaleMapping, Strategy, Version

_PRINTER = Printer(columns=(), row=lambda _obj, _now_ns: [])


def _keep_status(new: Object, old: Object) -> None:
    new.pop("status", None)
    if "status" in old:
        new["status"] = old["status"]


def _keep_spec(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]


def _size_errors(new: Object, old: Object | None) -> list[FieldError]:
    del old
    size = new["spec"].get("size", 0)
    return [invalid("spec.size", size, "must not be negative")] if size < 0 else []


def _set_size(obj: Object, size: int) -> None:
    obj["spec"]["size"] = size


def _default(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("colour", "grey")


def _grace_period_s(obj: Object, requested_s: int | None) -> int:
    if not obj["spec"].get("running"):
        return 0
    return int(obj["spec"].get("graceSeconds", 30)) if requested_s is None else requested_s


def _is_held(obj: Object) -> bool:
    return bool(obj.get("spec", {}).get("finalizers"))


def _terminate(obj: Object) -> None:
    obj.setdefault("status", {})["phase"] = "Terminating"


def _finalize(new: Object, old: Object) -> None:
    new["status"] = old.get("status", {})


NAMESPACES = Resource(
    group="",
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    versions=(Version("v1", ""),),
    storage_version="v1",
    printer=_PRINTER,
    namespaced=False,
    strategy=Strategy(
        prepare_delete=_terminate,
        is_held=_is_held,
        prepare_subresource_update={"finalize": _finalize},
        permanent_names=namespace.RESOURCE.strategy.permanent_names,
    ),
)

GADGETS = Resource(
    group="example.com",
    plural="gadgets",
    singular="gadget",
    kind="Gadget",
    versions=(Version("v1", "", default=_default),),
    storage_version="v1",
    printer=_PRINTER,
    has_status=True,
    strategy=Strategy(
        prepare_create=lambda obj: obj.pop("status", None),
        prepare_update=_keep_status,
        prepare_status_update=_keep_spec,
        validate=_size_errors,
        has_generation=True,
    ),
    fields=lambda obj: {"spec.colour": obj["spec"].get("colour", "")},
    scale=ScaleMapping(
        replicas=lambda obj: int(obj["spec"].get("size", 0)),
        status_replicas=lambda obj: int(obj.get("status", {}).get("size", 0)),
        selector=lambda obj: str(obj["spec"].get("selector", "")),
        set_replicas=_set_size,
    ),
)

RUNNERS = Resource(
    group="example.com",
    plural="runners",
    singular="runner",
    kind="Runner",
    versions=(Version("v1", ""),),
    storage_version="v1",
    printer=_PRINTER,
    strategy=Strategy(has_generation=True, grace_period_s=_grace_period_s),
)

ZONES = Resource(
    group="",
    plural="zones",
    singular="zone",
    kind="Zone",
    versions=(Version("v1", ""),),
    storage_version="v1",
    printer=_PRINTER,
    namespaced=False,
    strategy=Strategy(orphans_by_default=True, allows_unconditional_update=False),
)

KINDS = (NAMESPACES, GADGETS, RUNNERS, ZONES)


def obj(name: str, *, namespace: str = "default", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """An object to create, without kind and apiVersion; `namespace` is "" for none, `spec` the fields of its spec."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": spec}
