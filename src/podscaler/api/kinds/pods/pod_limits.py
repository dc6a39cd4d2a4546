"""Applies a LimitRange to a new pod: sets missing requests and limits of its containers, and checks the others.

Called by `podscaler.controlplane.admission.limit_ranges`, also for the requests of PersistentVolumeClaims, which are
only checked, and by `podscaler.lint.model.workloads`. A new type of items: a case in `violations`. An item of
`spec.limits` of a LimitRange has a type (Container, Pod, PersistentVolumeClaim) and amounts by resource name: `min`,
`max`, `default`, `defaultRequest`, `maxLimitRequestRatio`. Requests that a LimitRange sets count for autoscalers, whose
utilization targets are in percent of requests. Quantities were checked when they were decoded.

Source: Kubernetes' admission plugin LimitRanger, its annotation and its messages.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINER_FIELDS = (("containers", "container"), ("initContainers", "init container"))
"""(field of a pod spec, how messages name one of its containers)."""

Amounts = Mapping[str, Quantity]
"""Resource name -> amount."""


def complete(pod: Object, limit_range: Object) -> None:
    """Sets the requests and limits that containers lack, in place; ANNOTATION of the pod, set anew, names them."""
    limits, requests = _default_amounts(limit_range, "default"), _default_amounts(limit_range, "defaultRequest")
    notes: list[str] = []
    for field, description in _CONTAINER_FIELDS:
        for container in pod["spec"].get(field) or []:
            notes += _complete_container(container, requests, limits, description)
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = annotations | {ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _default_amounts(limit_range: Object, amount_field: str) -> dict[str, str]:
    """The default limits (`default`) or requests (`defaultRequest`) of containers, by name; the last counts."""
    defaults: dict[str, str] = {}
    for limit_item in _items_of_type(limit_range, "Container"):
        defaults |= limit_item.get(amount_field) or {}
    return defaults


def _items_of_type(limit_range: Object, limit_type: str) -> Iterator[Object]:
    """Yields the items of a LimitRange that have the type."""
    for limit_item in (limit_range.get("spec") or {}).get("limits") or []:
        if limit_item.get("type") == limit_type:
            yield limit_item


def _complete_container(
    container: Object, requests: Mapping[str, str], limits: Mapping[str, str], description: str
) -> list[str]:
    """Sets missing requests and limits of a container, in place.

    Args:
        requests: default requests, by resource name.
        limits: default limits, by resource name.
        description: how the notes name the container.

    Returns a note for the annotation of the pod about requests that were set, and one about limits.
    """
    notes = []
    for field, default_amounts, noun in (("requests", requests, "request"), ("limits", limits, "limit")):
        resources = container.setdefault("resources", {})
        amounts = resources.get(field) or {}
        missing_amounts = {name: amount for name, amount in default_amounts.items() if name not in amounts}
        if missing_amounts:
            resources[field] = {**amounts, **missing_amounts}
            set_names = ", ".join(sorted(missing_amounts))
            notes.append(f"{set_names} {noun} for {description} {container.get('name', '')}")
    return notes


def violations(pod: Object, limit_range: Object) -> list[str]:
    """The messages about requests and limits of a pod that the LimitRange does not allow; empty if it allows all."""
    spec, messages = pod["spec"], []
    containers = [container for field, _ in _CONTAINER_FIELDS for container in spec.get(field) or []]
    for limit_item in (limit_range.get("spec") or {}).get("limits") or []:
        if limit_item.get("type") == "Container":
            for container in containers:
                requests, limits = _declared_amounts(container, "requests"), _declared_amounts(container, "limits")
                messages += _item_violations(limit_item, requests, limits)
        elif limit_item.get("type") == "Pod":
            messages += _item_violations(limit_item, _pod_amounts(spec, "requests"), _pod_amounts(spec, "limits"))
    return messages


def claim_violations(claim: Object, limit_range: Object) -> list[str]:
    """The messages about requests of a PersistentVolumeClaim beyond `min` and `max`; empty if all are allowed."""
    requests = _declared_amounts(claim.get("spec") or {}, "requests")
    messages: list[str] = []
    # claims have no limits; the empty one makes `_bound_violations` report requests alone
    checked_amounts: tuple[tuple[str, Amounts], ...] = (("request", requests), ("limit", {}))
    for limit_item in _items_of_type(limit_range, "PersistentVolumeClaim"):
        for bound_name, bounds in (("minimum", limit_item.get("min")), ("maximum", limit_item.get("max"))):
            messages += _bound_violations(bound_name, limit_item["type"], bounds or {}, checked_amounts)
    return messages


def _declared_amounts(container_or_claim_spec: Object, field: str) -> dict[str, Quantity]:
    """The `requests` or `limits` (`field`) of a container or a claim, by resource name."""
    amounts = (container_or_claim_spec.get("resources") or {}).get(field) or {}
    return {name: Quantity.parse(str(amount)) for name, amount in amounts.items()}


def _pod_amounts(spec: Object, field: str) -> dict[str, Quantity]:
    """The `requests` or `limits` (`field`) of a pod, by resource name.

    The sum over containers and sidecars (init containers that keep running), and at least the amount of each init
    container.
    """
    init_containers = spec.get("initContainers") or []
    concurrent_containers = [
        *(spec.get("containers") or []),
        *(init_container for init_container in init_containers if init_container.get("restartPolicy") == "Always"),
    ]
    totals: dict[str, Quantity] = {}
    for container in concurrent_containers:
        for name, amount in _declared_amounts(container, field).items():
            totals[name] = totals[name] + amount if name in totals else amount
    for container in init_containers:
        for name, amount in _declared_amounts(container, field).items():
            totals[name] = max(totals.get(name, amount), amount)
    return totals


def _item_violations(limit_item: Object, requests: Amounts, limits: Amounts) -> list[str]:
    """The messages about requests and limits that one item forbids: too small, too large, too large a ratio."""
    limit_type = limit_item["type"]
    named_requests, named_limits = ("request", requests), ("limit", limits)
    return [
        *_bound_violations("minimum", limit_type, limit_item.get("min") or {}, (named_requests, named_limits)),
        *_bound_violations("maximum", limit_type, limit_item.get("max") or {}, (named_limits, named_requests)),
        *_ratio_violations(limit_type, limit_item.get("maxLimitRequestRatio") or {}, requests, limits),
    ]


def _bound_violations(
    bound_name: str, limit_type: str, bounds: Mapping[str, Any], checked_amounts: tuple[tuple[str, Amounts], ...]
) -> Iterator[str]:
    """Yields a message for each resource with an amount beyond its bound, or without the first of `checked_amounts`.

    Args:
        bound_name: `minimum` or `maximum`.
        limit_type: the type of the item, for messages.
        bounds: resource name -> bound.
        checked_amounts: (`request` or `limit`, amounts by resource name). The first amounts must contain every resource
            that has a bound; the others may lack it.
    """
    required_description, required_amounts = checked_amounts[0]
    for name in sorted(bounds):
        bound = Quantity.parse(str(bounds[name]))
        bound_text = f"{bound_name} {name} usage per {limit_type} is {bounds[name]}"
        if name not in required_amounts:
            yield f"{bound_text}.  No {required_description} is specified"
            continue
        for description, amounts in checked_amounts:
            if name in amounts and _is_beyond(bound_name, bound, amounts[name]):
                yield f"{bound_text}, but {description} is {amounts[name]}"
                break  # one message for each resource


def _is_beyond(bound_name: str, bound: Quantity, amount: Quantity) -> bool:
    """Whether an amount is below the minimum, or above the maximum."""
    return amount < bound if bound_name == "minimum" else bound < amount


def _ratio_violations(limit_type: str, ratios: Mapping[str, Any], requests: Amounts, limits: Amounts) -> Iterator[str]:
    """Yields a message for each resource whose limit is above `ratios` times its request, or that lacks one of both."""
    for name in sorted(ratios):
        max_ratio = Quantity.parse(str(ratios[name]))
        ratio_text = f"{name} max limit to request ratio per {limit_type} is {ratios[name]}"
        missing_parts = [
            description
            for description, amounts in (("request", requests), ("limit", limits))
            if not _is_set(amounts, name)
        ]
        if missing_parts:
            missing_part = missing_parts[0]
            yield f"{ratio_text}, but no {missing_part} is specified or {missing_part} is 0"
            continue
        ratio = limits[name].approximate_float() / requests[name].approximate_float()
        if ratio > max_ratio.approximate_float():
            yield f"{ratio_text}, but provided ratio is {ratio:f}"


def _is_set(amounts: Amounts, name: str) -> bool:
    """Whether there is a positive amount of the resource."""
    return name in amounts and amounts[name].sign() > 0
