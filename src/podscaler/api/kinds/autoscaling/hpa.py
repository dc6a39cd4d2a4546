"""The record of HorizontalPodAutoscaler (autoscaling/v2, which is stored, and v1).

Source: docs/spec/api.md.
"""

from collections.abc import Callable

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_defaults, hpa_table, hpa_v1, hpa_validation
from podscaler.api.resource import semantics, status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version


def _to_storage(hpa: Object) -> Object:
    hpa_annotations.strip(hpa)
    hpa_defaults.set_status_defaults(hpa)
    return hpa


def complete(hpa: Object) -> Object:
    """A stored object as v2, in place; one that came through an older version gets its behavior defaults here."""
    hpa_defaults.set_v2_defaults(hpa)
    hpa_defaults.set_status_defaults(hpa)
    return hpa


def _to_v1(hpa: Object) -> Object:
    return hpa_v1.from_v2(complete(hpa))


def _prepare_create(new: Object) -> None:
    new["status"] = {}
    hpa_defaults.set_status_defaults(new)


def _complete_spec(hpa: Object) -> Object:
    """The spec with the defaults that an object stored through v1 may lack."""
    complete: Object = {"spec": semantics.copied(hpa.get("spec") or {})}
    hpa_defaults.set_v2_defaults(complete)
    spec: Object = complete["spec"]
    return spec


def _seen_by_managers(sent: Object) -> Callable[[Object], Object]:
    """Field managers own a sent empty list of current metrics, which is stored as null."""
    return _with_empty_metrics if (sent.get("status") or {}).get("currentMetrics") == [] else _as_it_is


def _with_empty_metrics(stored: Object) -> Object:
    status = stored.get("status") or {}
    return stored if status.get("currentMetrics") else {**stored, "status": {**status, "currentMetrics": []}}


def _as_it_is(stored: Object) -> Object:
    return stored


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
        spec_of=_complete_spec,
        seen_by_managers=_seen_by_managers,
    ),
    printer=hpa_table.PRINTER,
)
