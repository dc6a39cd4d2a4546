"""What is wrong with the tolerations of a pod spec.

Called by `pod_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, not_supported
from podscaler.api.resource.resources import Object

_GATED_OPERATORS = ("Gt", "Lt")
"""Upstream has them behind a feature gate, which is closed."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def faults(tolerations: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the tolerations at `path`."""
    found = []
    for index, toleration in enumerate(tolerations):
        found += _toleration_faults(toleration, f"{path}[{index}]")
    return found


def _toleration_faults(toleration: Object, path: str) -> list[FieldError]:
    key, operator, effect = (toleration.get(name, "") for name in ("key", "operator", "effect"))
    found = [invalid(f"{path}.key", key, text) for text in names.label_key_faults(key)] if key else []
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid(f"{path}.operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(f"{path}.effect", effect, text))
    if operator in ("", "Equal"):
        value = toleration.get("value", "")
        found += [invalid(f"{path}.operator", value, text) for text in names.label_value_faults(value)]
    elif operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        found.append(invalid(f"{path}.operator", toleration["value"], text))
    elif operator in _GATED_OPERATORS:
        found.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
    elif operator != "Exists":
        found.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        found.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return found
