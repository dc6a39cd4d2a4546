"""Validates resources that are embedded in custom objects: apiVersion, kind, labels and annotations.

Called by `records`.

Source: the API documentation of x-kubernetes-embedded-resource.
"""

from podscaler.api.crd import structural
from podscaler.api.crd.structural import Structural
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import metadata as metadata_rules
from podscaler.api.resource.resources import Object


def field_errors(obj: Object, schema: Structural) -> list[FieldError]:
    """The field errors of all resources that are embedded in an object."""
    return [
        error for path, embedded in structural.embedded_resources(obj, schema) for error in _of_resource(embedded, path)
    ]


def _of_resource(value: Object, path: str) -> list[FieldError]:
    found = [required(f"{path}.{name}") for name in ("apiVersion", "kind") if not value.get(name)]
    api_version = value.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        text = f"unexpected GroupVersion string: {api_version}"
        found.append(invalid(f"{path}.apiVersion", api_version, text))
    kind = value.get("kind")
    if isinstance(kind, str) and kind:
        head = "may have mixed case, but should otherwise match: "
        found += [invalid(f"{path}.kind", kind, f"{head}{text}") for text in names.dns_label_faults(kind.lower())]
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        found += metadata_rules.label_errors(metadata.get("labels") or {}, f"{path}.metadata.labels")
        found += metadata_rules.annotation_errors(metadata.get("annotations") or {}, f"{path}.metadata.annotations")
    return found
