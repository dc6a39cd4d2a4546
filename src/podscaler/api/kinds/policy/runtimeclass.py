"""Resource definition of RuntimeClass (node.k8s.io/v1): the container runtime, overhead and nodes of pods of the class.

RESOURCE, at the end, registers `validate` as a hook, which `api.resource.resources` explains; `api.kinds.catalog` lists
it for the API server, and `podscaler.controlplane.admission.pod_classes` applies the class to pods. A new field needs
regenerated type facts (CONTRIBUTING.md), and its check in `validate`.

Source: the API reference of node.k8s.io/v1.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import checks, metadata, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a RuntimeClass to be stored; its handler cannot be changed."""
    handler = new.get("handler", "")
    if old is not None:  # an update can change other fields, which upstream does not validate again
        return checks.unchanged(handler, old.get("handler", ""), "handler")
    errors = checks.required_form(handler, "handler", names.dns_label_errors)
    selector = (new.get("scheduling") or {}).get("nodeSelector") or {}
    return errors + metadata.label_errors(selector, "scheduling.nodeSelector")


RESOURCE = Resource(
    group="node.k8s.io",
    plural="runtimeclasses",
    kind="RuntimeClass",
    versions=(Version("v1", "node/v1.RuntimeClass"),),
    namespaced=False,
    strategy=Strategy(validate=validate, allows_unconditional_update=False),
    printer=tables.named(
        "runtime class",
        Column("Handler", description="What runs its pods."),
        cells=lambda runtime_class, _now_ns: [runtime_class.get("handler", "")],
        note="",
    ),
)
