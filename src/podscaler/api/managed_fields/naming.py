"""What a manager may be called.

Called for the options of requests and for entries that clients wrote.

Source: apimachinery's ValidateFieldManager.
"""

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError

NAME_MAX_BYTES = 128


def faults(path: str, name: str) -> list[FieldError]:
    """What is wrong with the name of a manager at `path`: its length, and each character that cannot be printed."""
    found = []
    if len(name.encode("utf-8", "replace")) > NAME_MAX_BYTES:
        found.append(field.too_long(path, NAME_MAX_BYTES))
    position = 0
    for character in name:
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {position})"
            found.append(field.invalid(path, name, text))
        position += len(character.encode("utf-8", "replace"))
    return found
