"""What is wrong with the DNS configuration of a pod spec.

Called by `pod_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

import re

from podscaler.api.machinery import addresses
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource.resources import Object

_SERVERS_MAX = 3
_SEARCHES_MAX = 32
_SEARCHES_MAX_CHARACTERS = 2048
_LABEL_TEXT = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_TEXT = rf"{_LABEL_TEXT}(\.{_LABEL_TEXT})*"
_SEARCH = re.compile(_SEARCH_TEXT)
_SEARCH_FAULT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start"
    f" and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH_TEXT}')"
)


def faults(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with `dnsConfig` at `path`, which the policy `None` demands."""
    config, needs_own = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")] if needs_own else []
    servers = config.get("nameservers") or []
    found = []
    if needs_own and not servers:
        found.append(
            required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
        )
    if len(servers) > _SERVERS_MAX:
        text = f"must not have more than {_SERVERS_MAX} nameservers"
        found.append(invalid(f"{path}.nameservers", servers, text))
    for index, server in enumerate(servers):
        if addresses.find(server) is None:
            found.append(invalid(f"{path}.nameservers[{index}]", server, addresses.FAULT))
    found += _search_faults(config.get("searches") or [], f"{path}.searches")
    for index, option in enumerate(config.get("options") or []):
        found += [] if option.get("name") else [required(f"{path}.options[{index}]", "must not be empty")]
    return found


def _search_faults(searches: list[str], path: str) -> list[FieldError]:
    found = []
    if len(searches) > _SEARCHES_MAX:
        found.append(invalid(path, searches, f"must not have more than {_SEARCHES_MAX} search paths"))
    if len(" ".join(searches)) > _SEARCHES_MAX_CHARACTERS:
        text = f"must not have more than {_SEARCHES_MAX_CHARACTERS} characters (including spaces) in the search list"
        found.append(invalid(path, searches, text))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if name and not _SEARCH.fullmatch(name):
            found.append(invalid(f"{path}[{index}]", name, _SEARCH_FAULT))
    return found
