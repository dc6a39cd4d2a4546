"""Resource definition of PodTemplate (core/v1): a pod template by itself, which no controller uses.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new column needs a cell in `_cells` at the same position.

Source: the API reference of core/v1.
"""

from typing import Any

from podscaler.api.kinds.pods import pod_defaults, pod_validation, pod_warnings
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version


def _set_defaults(pod_template: Object) -> None:
    """API defaults, in place; the template is a field of the object itself, as of the spec of a workload."""
    pod_defaults.set_template_defaults(pod_template)


def _validate(new: Object, old: Object | None) -> list[FieldError]:
    return pod_validation.validate_template(new.get("template") or {}, "template", old=(old or {}).get("template"))


def _warnings(new: Object, old: Object | None) -> list[str]:
    """The warnings about the template; `pod_warnings` expects it in a field `spec`, as workloads have it."""
    return pod_warnings.of_template({**new, "spec": new}, None if old is None else {**old, "spec": old})


def _cells(pod_template: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: names and images of the containers, labels of the pods."""
    template = pod_template.get("template") or {}
    container_names, images = printing.containers(template.get("spec") or {})
    return [container_names, images, printing.labels((template.get("metadata") or {}).get("labels"))]


RESOURCE = Resource(
    group="",
    plural="podtemplates",
    kind="PodTemplate",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.PodTemplate", default=_set_defaults),),
    strategy=Strategy(
        validate=_validate,
        warnings=_warnings,
        has_generation=True,
        spec_of=lambda pod_template: pod_template.get("template"),
    ),
    printer=tables.without_age(
        "pod template",
        Column("Containers", description="Names of the template's containers."),
        Column("Images", description="Images of the template's containers."),
        Column("Pod Labels", description="Labels of the template's pods."),
        cells=_cells,
    ),
)
