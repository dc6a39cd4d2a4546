"""Resource definition of HorizontalPodAutoscaler: the versions autoscaling/v2 (stored) and v1, with their hooks.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. Defaults are in `hpa_defaults`, validation in `hpa_validation`, the
conversion of v1 in `hpa_v1`; older versions are in `hpa_removed_versions`, which replaces this record where they are
served. A new field of v2: its default and its validation there; `hpa_annotations` says how older versions keep it.

Source: docs/spec/api.md.
"""

from collections.abc import Callable

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_defaults, hpa_table, hpa_v1, hpa_validation
from podscaler.api.resource import semantics, status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version


def _to_storage(hpa: Object) -> Object:
    """Makes a v2 object its stored form, in place: no annotations of older versions, a complete status; returns it."""
    hpa_annotations.remove_reserved(hpa)
    hpa_defaults.set_status_defaults(hpa)
    return hpa


def complete(hpa: Object) -> Object:
    """Sets all defaults of v2 in a stored object, in place, and returns it; one of an older version may lack some."""
    hpa_defaults.set_v2_defaults(hpa)
    hpa_defaults.set_status_defaults(hpa)
    return hpa


def _to_v1(hpa: Object) -> Object:
    return hpa_v1.from_v2(complete(hpa))


def _prepare_create(new: Object) -> None:
    """Sets the first status, in place."""
    new["status"] = {}
    hpa_defaults.set_status_defaults(new)


def _completed_spec(hpa: Object) -> Object:
    """The spec with all defaults: an object stored through v1 may lack some, which is no change of the spec."""
    completed: Object = {"spec": semantics.copied(hpa.get("spec") or {})}
    hpa_defaults.set_v2_defaults(completed)
    spec: Object = completed["spec"]
    return spec


def _make_managed_form(hpa: Object) -> Callable[[Object], Object]:
    """The hook `seen_by_managers`: a function from the stored object to what field managers own; `hpa` is the sent one.

    An empty list of current metrics is stored as null; the manager that sent the empty list owns the field.
    """
    return _with_empty_metrics if (hpa.get("status") or {}).get("currentMetrics") == [] else _unchanged


def _with_empty_metrics(hpa: Object) -> Object:
    """The stored object with an empty list in place of current metrics that are null."""
    status = hpa.get("status") or {}
    return hpa if status.get("currentMetrics") else {**hpa, "status": {**status, "currentMetrics": []}}


def _unchanged(hpa: Object) -> Object:
    return hpa


RESOURCE = Resource(
    group="autoscaling",
    plural="horizontalpodautoscalers",
    kind="HorizontalPodAutoscaler",
    versions=(
        Version(
            "v2",
            "autoscaling/v2.HorizontalPodAutoscaler",
            default=hpa_defaults.set_v2_defaults,
            to_storage=_to_storage,
            from_storage=complete,
        ),
        Version(
            "v1",
            "autoscaling/v1.HorizontalPodAutoscaler",
            default=hpa_defaults.set_v1_defaults,
            to_storage=hpa_v1.to_v2,
            from_storage=_to_v1,
        ),
    ),
    hidden_annotations=hpa_annotations.RESERVED,
    short_names=("hpa",),
    categories=("all",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=hpa_validation.validate,
        validate_status=hpa_validation.validate_status,
        has_generation=True,
        spec_of=_completed_spec,
        seen_by_managers=_make_managed_form,
    ),
    printer=hpa_table.PRINTER,
)
