"""What is wrong with a reference to an object by group, kind and name.

Called by the validation of ingresses and ingress classes.

Source: upstream's messages.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import references
from podscaler.api.resource.resources import Object


def faults(reference: Object, path: str) -> list[FieldError]:
    """What is wrong with the reference at `path`."""
    group = reference.get("apiGroup") or ""
    texts = names.dns_subdomain_faults(group) if group else []
    found = [invalid(f"{path}.apiGroup", group, text) for text in texts]
    return found + references.named_faults(reference, path)
