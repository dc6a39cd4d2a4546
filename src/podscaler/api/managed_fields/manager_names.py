"""Validates the names of field managers (`?fieldManager=kubectl`).

Called for the options of requests (`podscaler.controlplane.apiserver.http.query_options`), and for entries of
metadata.managedFields that clients send (`podscaler.controlplane.registry.field_managers`).

Source: apimachinery's ValidateFieldManager.
"""

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError

NAME_MAX_BYTES = 128


def errors(path: str, name: str) -> list[FieldError]:
    """The field errors of a manager's name at `path`: its length, and each character that is not printable."""
    found_errors = []
    if len(name.encode("utf-8", "replace")) > NAME_MAX_BYTES:
        found_errors.append(field.too_long(path, NAME_MAX_BYTES))
    offset_bytes = 0
    for character in name:
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {offset_bytes})"
            found_errors.append(field.invalid(path, name, text))
        offset_bytes += len(character.encode("utf-8", "replace"))
    return found_errors
