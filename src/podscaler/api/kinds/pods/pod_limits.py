"""Applies a LimitRange to a new pod: sets missing requests and limits of its containers, and checks the others.

Requests of PersistentVolumeClaims are checked alone.

Called by `podscaler.controlplane.admission.limit_ranges`. Requests that a LimitRange sets count for autoscalers, whose
utilization targets are in percent of requests.

Source: Kubernetes' admission plugin LimitRanger, its annotation and its messages.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

ANNOTATION = "kubernetes.io/limit-ranger"
_GROUPS = (("containers", "container"), ("initContainers", "init container"))

Amounts = Mapping[str, Quantity]


def complete(pod: Object, limit_range: Object) -> None:
    """Set the requests and limits that containers lack, in place, and list them in the annotation."""
    limits, requests = _defaults(limit_range, "default"), _defaults(limit_range, "defaultRequest")
    notes = [
        note
        for group, description in _GROUPS
        for container in pod["spec"].get(group) or []
        for note in _complete_container(container, requests, limits, description)
    ]
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = annotations | {ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _defaults(limit_range: Object, part: str) -> dict[str, str]:
    defaults: dict[str, str] = {}
    for item in _items(limit_range, "Container"):
        defaults |= item.get(part) or {}
    return defaults


def _items(limit_range: Object, kind: str) -> Iterator[Object]:
    for limit in (limit_range.get("spec") or {}).get("limits") or []:
        if limit.get("type") == kind:
            yield limit


def _complete_container(
    container: Object, requests: Mapping[str, str], limits: Mapping[str, str], description: str
) -> Iterator[str]:
    """Add missing requests and limits; yields what was added, for the annotation of the pod."""
    for part, default_amounts, word in (("requests", requests, "request"), ("limits", limits, "limit")):
        resources = container.setdefault("resources", {})
        amounts = resources.get(part) or {}
        new = {name: amount for name, amount in default_amounts.items() if name not in amounts}
        if new:
            resources[part] = {**amounts, **new}
            yield f"{', '.join(sorted(new))} {word} for {description} {container.get('name', '')}"


def violations(pod: Object, limit_range: Object) -> list[str]:
    """The messages about requests and limits of a pod that the range does not allow; empty if it allows all."""
    spec, messages = pod["spec"], []
    for limit in (limit_range.get("spec") or {}).get("limits") or []:
        if limit.get("type") == "Container":
            for group, _ in _GROUPS:
                for container in spec.get(group) or []:
                    messages += _errors(limit, _amounts(container, "requests"), _amounts(container, "limits"))
        elif limit.get("type") == "Pod":
            messages += _errors(limit, _pod_amounts(spec, "requests"), _pod_amounts(spec, "limits"))
    return messages


def claim_violations(claim: Object, limit_range: Object) -> list[str]:
    """The messages about requests of a PersistentVolumeClaim that the range does not allow; empty if it allows all."""
    requests = _amounts(claim.get("spec") or {}, "requests")
    messages: list[str] = []
    for item in _items(limit_range, "PersistentVolumeClaim"):
        for bound, bounds in (("minimum", item.get("min")), ("maximum", item.get("max"))):
            messages += _bound_violations(bound, item["type"], bounds or {}, (("request", requests), ("limit", {})))
    return messages


def _amounts(container: Object, part: str) -> dict[str, Quantity]:
    amounts = (container.get("resources") or {}).get(part) or {}
    return {name: Quantity.parse(str(amount)) for name, amount in amounts.items()}


def _pod_amounts(spec: Object, part: str) -> dict[str, Quantity]:
    """The requests (or limits) of a pod: the sum over containers and sidecars, at least those of any init container."""
    inits = spec.get("initContainers") or []
    together = [
        *(spec.get("containers") or []),
        *(init_container for init_container in inits if init_container.get("restartPolicy") == "Always"),
    ]
    total: dict[str, Quantity] = {}
    for container in together:
        for name, amount in _amounts(container, part).items():
            total[name] = total[name] + amount if name in total else amount
    for container in inits:
        for name, amount in _amounts(container, part).items():
            total[name] = max(total.get(name, amount), amount)
    return total


def _errors(item: Object, requests: Amounts, limits: Amounts) -> list[str]:
    """What one entry of a LimitRange forbids: too little, too much, too large a ratio of limit to request."""
    kind = item["type"]
    return [
        *_bound_violations("minimum", kind, item.get("min") or {}, (("request", requests), ("limit", limits))),
        *_bound_violations("maximum", kind, item.get("max") or {}, (("limit", limits), ("request", requests))),
        *_ratio_violations(kind, item.get("maxLimitRequestRatio") or {}, requests, limits),
    ]


def _bound_violations(
    bound: str, kind: str, bounds: Mapping[str, Any], amounts_by_part: tuple[tuple[str, Amounts], ...]
) -> Iterator[str]:
    """The first of `amounts_by_part` must be there and keep to the bound, the other one only if it is there."""
    (main, main_amounts), _ = amounts_by_part
    for name in sorted(bounds):
        text, least = f"{bound} {name} usage per {kind} is {bounds[name]}", Quantity.parse(str(bounds[name]))
        if name not in main_amounts:
            yield f"{text}.  No {main} is specified"
            continue
        for description, amounts in amounts_by_part:
            beyond = name in amounts and (amounts[name] < least if bound == "minimum" else least < amounts[name])
            if beyond:
                yield f"{text}, but {description} is {amounts[name]}"
                break


def _ratio_violations(kind: str, ratios: Mapping[str, Any], requests: Amounts, limits: Amounts) -> Iterator[str]:
    """Messages for limits that are more than `ratios` times the requests, or that one of both lacks."""
    for name in sorted(ratios):
        ratio_max = Quantity.parse(str(ratios[name]))
        message = f"{name} max limit to request ratio per {kind} is {ratios[name]}"
        missing = next(
            (
                description
                for description, amounts in (("request", requests), ("limit", limits))
                if not _is_set(amounts, name)
            ),
            "",
        )
        if missing:
            yield f"{message}, but no {missing} is specified or {missing} is 0"
            continue
        ratio = limits[name].approximate_float() / requests[name].approximate_float()
        if ratio > ratio_max.approximate_float():
            yield f"{message}, but provided ratio is {ratio:f}"


def _is_set(amounts: Amounts, name: str) -> bool:
    return name in amounts and amounts[name].sign() > 0
