"""What is wrong with the requests and limits of a container.

Called by `container_validation`.

Source: upstream's messages (golden captures).
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object


def faults(resources: Object, path: str) -> list[FieldError]:
    """What is wrong with `requests` and `limits` of the resources at `path`."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found = _amount_faults(limits, f"{path}.limits")
    found += _amount_faults(requests, f"{path}.requests")
    for name in sorted(requests):
        found += _against_limit(name, requests[name], limits.get(name), path)
    return found


def _amount_faults(amounts: Object, path: str) -> list[FieldError]:
    found = []
    for name in sorted(amounts):
        found += [invalid(f"{path}[{name}]", name, text) for text in names.container_resource_name_faults(name)]
        amount = Quantity.parse(str(amounts[name]))
        if amount.sign() < 0:
            found.append(invalid(f"{path}[{name}]", amounts[name], "must be greater than or equal to 0"))
        elif _is_whole(name) and amount.milli_value() % 1000:
            found.append(invalid(f"{path}[{name}]", amounts[name], "must be an integer"))
    return found


def _against_limit(name: str, request: str, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        return (
            [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
            if _is_whole(name)
            else []
        )
    amount, most = Quantity.parse(str(request)), Quantity.parse(str(limit))
    if _is_whole(name) and amount != most:
        return [invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {most}")]
    if amount > most:
        return [invalid(f"{path}.requests", str(amount), f"must be less than or equal to {name} limit of {most}")]
    return []


def _is_whole(name: str) -> bool:
    """Whether a resource comes in units that cannot be shared: extended resources and huge pages."""
    return "/" in name or name.startswith("hugepages-")
