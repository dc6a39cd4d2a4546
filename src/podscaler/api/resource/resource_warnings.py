"""What a client is warned of in amounts that it asks for.

Called by the records of claims and by the warnings about pods.

Source: upstream's warnings.
"""

from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

_IN_BYTES = ("storage", "memory", "ephemeral-storage")


def fractions(resources: Object, path: str) -> list[str]:
    """The warnings about amounts in bytes that are not whole."""
    found = []
    for name in _IN_BYTES:
        for part in ("limits", "requests"):
            amount = Quantity.parse(str((resources.get(part) or {}).get(name, "0")))
            if amount.milli_value() % 1000:
                found.append(f'{path}.{part}[{name}]: fractional byte value "{amount}" is invalid, must be an integer')
    return found
