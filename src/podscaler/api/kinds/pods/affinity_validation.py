"""What is wrong with the affinity of a pod spec.

Called by `pod_validation`. Differs: the keys in `matchLabelKeys` are not looked for in the pod's own labels.

Source: upstream's messages; the API reference of core/v1.
"""

from collections.abc import Callable

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Object

Judge = Callable[[Object, str], list[FieldError]]
"""What is wrong with a term at a path."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_MAX = 100
_ONE_VALUE = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"


def faults(affinity: Object, path: str) -> list[FieldError]:
    """What is wrong with the affinity at `path`."""
    found = []
    if (to_nodes := affinity.get("nodeAffinity")) is not None:
        found += _node_faults(to_nodes, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if (to_pods := affinity.get(name)) is not None:
            found += _pod_faults(to_pods, f"{path}.{name}")
    return found


def _node_faults(affinity: Object, path: str) -> list[FieldError]:
    found = []
    if (wanted := affinity.get(REQUIRED)) is not None:
        terms, place = wanted.get("nodeSelectorTerms") or [], f"{path}.{REQUIRED}.nodeSelectorTerms"
        found += [] if terms else [required(place, "must have at least one node selector term")]
        for index, term in enumerate(terms):
            found += _node_term_faults(term, f"{place}[{index}]")
    return found + _preferred_faults(affinity, path, "preference", _node_term_faults)


def _preferred_faults(affinity: Object, path: str, part: str, judge: Judge) -> list[FieldError]:
    """What is wrong with what is preferred, each with a weight and a term in its field `part`."""
    found = []
    for index, preferred in enumerate(affinity.get(PREFERRED) or []):
        place = f"{path}.{PREFERRED}[{index}]"
        found += _weight_faults(preferred, place)
        found += judge(preferred.get(part) or {}, f"{place}.{part}")
    return found


def _weight_faults(preferred: Object, path: str) -> list[FieldError]:
    weight = preferred.get("weight", 0)
    if 1 <= weight <= _WEIGHT_MAX:
        return []
    return [invalid(f"{path}.weight", weight, f"must be in the range 1-{_WEIGHT_MAX}")]


def _node_term_faults(term: Object, path: str) -> list[FieldError]:
    found = []
    for index, requirement in enumerate(term.get("matchExpressions") or []):
        found += _expression_faults(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.get("matchFields") or []):
        found += _field_faults(requirement, f"{path}.matchFields[{index}]")
    return found


def _expression_faults(requirement: Object, path: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    key, place = requirement.get("key", ""), f"{path}.values"
    found = []
    if operator in ("In", "NotIn"):
        found += [] if values else [required(place, "must be specified when `operator` is 'In' or 'NotIn'")]
    elif operator in ("Exists", "DoesNotExist"):
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found += [forbidden(place, text)] if values else []
    elif operator in ("Gt", "Lt"):
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        found += [] if len(values) == 1 else [required(place, text)]
    else:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    found += [invalid(f"{path}.key", key, text) for text in names.label_key_faults(key)]
    for index, value in enumerate(values):
        found += [invalid(f"{place}[{index}]", value, text) for text in names.label_value_faults(value)]
    return found


def _field_faults(requirement: Object, path: str) -> list[FieldError]:
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    values = requirement.get("values") or []
    found = []
    if operator not in ("In", "NotIn"):
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        found.append(required(f"{path}.values", _ONE_VALUE))
    if key != "metadata.name":
        return [*found, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += [invalid(f"{path}.values[{index}]", value, text) for text in names.dns_subdomain_faults(value)]
    return found


def _pod_faults(affinity: Object, path: str) -> list[FieldError]:
    found = []
    for index, term in enumerate(affinity.get(REQUIRED) or []):
        found += _pod_term_faults(term, f"{path}.{REQUIRED}[{index}]")
    return found + _preferred_faults(affinity, path, "podAffinityTerm", _pod_term_faults)


def _pod_term_faults(term: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("labelSelector", "namespaceSelector"):
        found += label_selector.faults(term.get(name) or {}, f"{path}.{name}")
    for name in term.get("namespaces") or []:
        found += [invalid(f"{path}.namespace", name, text) for text in names.dns_label_faults(name)]
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        found += label_key_faults(term, name, path)
    key, place = term.get("topologyKey", ""), f"{path}.topologyKey"
    found += [] if key else [required(place, "can not be empty")]
    return found + [invalid(place, key, text) for text in names.label_key_faults(key)]


def label_key_faults(part: Object, name: str, path: str) -> list[FieldError]:
    """What is wrong with the keys in the field `name` of a term or constraint, which add to its labelSelector."""
    keys, place = part.get(name) or [], f"{path}.{name}"
    if keys and part.get("labelSelector") is None:
        return [forbidden(place, "must not be specified when labelSelector is not set")]
    return [
        invalid(f"{place}[{index}]", key, text)
        for index, key in enumerate(keys)
        for text in names.label_key_faults(key)
    ]
