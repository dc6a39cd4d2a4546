"""The rule for keys of ConfigMaps and Secrets, which become file names.

Called by their records and by the validation of pods that refer to keys.

Source: upstream's message (golden captures).
"""

import re

_FORM = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_BYTES = 253
_FAULT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def faults(key: str) -> list[str]:
    """What forbids `key` as a key."""
    found = [f"must be no more than {_MAX_BYTES} characters"] if len(key.encode()) > _MAX_BYTES else []
    if not _FORM.fullmatch(key):
        found.append(_FAULT)
    if key in (".", ".."):
        return [*found, f"may not be '{key}'"]
    return [*found, "may not start with '..'"] if key.startswith("..") else found
