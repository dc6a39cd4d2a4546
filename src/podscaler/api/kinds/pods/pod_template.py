"""Validation of the `template` of a workload: its labels, annotations and pod spec.

Called by `workload_spec` and the records of kinds with templates.

Source: golden captures of refused workloads.
"""

from podscaler.api.kinds.pods import pod_validation
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import metadata
from podscaler.api.resource.resources import Object


def faults(template: Object, path: str, *, old: Object | None = None) -> list[FieldError]:
    """What is wrong with a template; `old` is the stored one, whose pod spec is trusted when it did not change."""
    meta = template.get("metadata") or {}
    found = metadata.label_faults(meta.get("labels") or {}, f"{path}.labels")
    found += metadata.annotation_faults(meta.get("annotations") or {}, f"{path}.annotations")
    spec = template.get("spec") or {}
    if old is None or spec != old.get("spec"):
        stored = None if old is None else old.get("spec")
        found += pod_validation.spec_faults(spec, f"{path}.spec", is_template=True, old=stored)
    return found
