"""The rule for names such as `acme.io/foo`: a domain, and a path within it.

Called by the validation of ingress classes and Jobs, whose controllers are named so.

Source: upstream's messages.
"""

import re

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required

_PATH_TEXT = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATH = re.compile(_PATH_TEXT)


def faults(name: str, path: str) -> list[FieldError]:
    """What is wrong with the name at `path`."""
    if not name:
        return [required(path)]
    domain, _, rest = name.partition("/")
    if not domain or not rest:
        return [invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = [invalid(path, domain, text) for text in names.dns_subdomain_faults(domain)]
    if not _PATH.fullmatch(rest):
        found.append(invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH_TEXT}')"))
    return found
