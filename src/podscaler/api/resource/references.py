"""References to other objects by kind, name and apiVersion.

Called by the validation of autoscalers, ingresses and ingress classes.

Source: docs/spec/api.md 2.3 (spec), 2.5 (Name rules).
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource.resources import Object


def named_faults(reference: Object, path: str) -> list[FieldError]:
    """What is wrong with `kind` and `name`: missing, or no segment of a URL."""
    found = []
    for key in ("kind", "name"):
        value = reference.get(key, "")
        if not value:
            found.append(required(f"{path}.{key}"))
        found += [invalid(f"{path}.{key}", value, text) for text in names.path_segment_faults(value)]
    return found


def version_faults(version: str, path: str) -> list[FieldError]:
    """What is wrong with the form of an `apiVersion`: more than one slash."""
    if version.count("/") <= 1:
        return []
    return [invalid(path, version, f"unexpected GroupVersion string: {version}")]
