"""Validates the scheduling constraints of a pod spec: affinity, topology spread constraints, tolerations.

Called by `pod_validation`; `pod_warnings` uses REQUIRED and PREFERRED, the fields of an affinity with its terms.
Arguments of type `Object` are constraints, or parts of one, as JSON objects; `path` is the path of that part. A new
constraint: a function here, which `pod_validation.validate_spec` calls.

Source: kube-apiserver's messages; the API reference of core/v1.
Differs: keys in `matchLabelKeys` need not be among the pod's own labels.
"""

from functools import partial

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, label_selector
from podscaler.api.resource.resources import Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_MAX = 100
_ONE_VALUE_MESSAGE = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_INCLUSION_POLICIES = ("Honor", "Ignore")
_GATED_OPERATORS = ("Gt", "Lt")
"""Operators of tolerations behind a feature gate that is off: not supported, though their error lists them."""
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    """The field errors of the affinity at `path`."""
    errors = checks.optional(affinity.get("nodeAffinity"), f"{path}.nodeAffinity", _node_affinity_errors)
    for field in ("podAffinity", "podAntiAffinity"):
        errors += checks.optional(affinity.get(field), f"{path}.{field}", _pod_affinity_errors)
    return errors


def _node_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    """Errors of the required and the preferred terms for nodes."""
    errors = []
    if (required_terms := affinity.get(REQUIRED)) is not None:
        terms, field_path = required_terms.get("nodeSelectorTerms"), f"{path}.{REQUIRED}.nodeSelectorTerms"
        errors += checks.present(terms, field_path, "must have at least one node selector term")
        errors += checks.each(terms, field_path, _node_term_errors)
    return errors + _preferred_errors(affinity, path, "preference", _node_term_errors)


def _preferred_errors(affinity: Object, path: str, term_field: str, check_term: checks.Check) -> list[FieldError]:
    """Field errors of the preferred terms of an affinity: of the weight of each, and of its term.

    Args:
        term_field: the field of a preferred term that has the term: `preference` or `podAffinityTerm`.
        check_term: from a term and its path to its field errors.
    """
    errors = []
    for index, preferred in enumerate(affinity.get(PREFERRED) or []):
        item_path, weight = f"{path}.{PREFERRED}[{index}]", preferred.get("weight", 0)
        message = f"must be in the range 1-{_WEIGHT_MAX}"
        errors += checks.holds(1 <= weight <= _WEIGHT_MAX, f"{item_path}.weight", weight, message)
        errors += check_term(preferred.get(term_field) or {}, f"{item_path}.{term_field}")
    return errors


def _node_term_errors(term: Object, path: str) -> list[FieldError]:
    """Field errors of a term that selects nodes by labels and fields."""
    check_requirement = partial(label_selector.requirement_errors, is_comparing=True)
    errors = checks.each(term.get("matchExpressions"), f"{path}.matchExpressions", check_requirement)
    return errors + checks.each(term.get("matchFields"), f"{path}.matchFields", _field_requirement_errors)


def _field_requirement_errors(requirement: Object, path: str) -> list[FieldError]:
    """Errors of a requirement on a node's field, which can only be `metadata.name`."""
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    values, errors = requirement.get("values") or [], []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        errors.append(required(f"{path}.values", _ONE_VALUE_MESSAGE))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    return errors + checks.each_well_formed(values, f"{path}.values", names.dns_subdomain_errors)


def _pod_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    """Field errors of the required and the preferred terms for pods."""
    errors = checks.each(affinity.get(REQUIRED), f"{path}.{REQUIRED}", _pod_term_errors)
    return errors + _preferred_errors(affinity, path, "podAffinityTerm", _pod_term_errors)


def _pod_term_errors(term: Object, path: str) -> list[FieldError]:
    """Errors of an affinity term for pods: selectors, namespaces, label keys, topology key."""
    errors = []
    for field in ("labelSelector", "namespaceSelector"):
        errors += label_selector.validate(term.get(field) or {}, f"{path}.{field}")
    for name in term.get("namespaces") or []:
        errors += checks.well_formed(name, f"{path}.namespace", names.dns_label_errors)  # singular, as upstream
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        errors += _label_key_errors(term, field, path)
    key, field_path = term.get("topologyKey", ""), f"{path}.topologyKey"
    errors += checks.present(key, field_path, "can not be empty")
    return errors + checks.well_formed(key, field_path, names.label_key_errors)


def _label_key_errors(term_or_constraint: Object, field: str, path: str) -> list[FieldError]:
    """The errors of the label keys in the field `field`, which complete the labelSelector of a term or constraint."""
    keys, field_path = term_or_constraint.get(field), f"{path}.{field}"
    if keys and term_or_constraint.get("labelSelector") is None:
        return [forbidden(field_path, "must not be specified when labelSelector is not set")]
    return checks.each_well_formed(keys or (), field_path, names.label_key_errors)


def spread_errors(constraints: list[Object], path: str) -> list[FieldError]:
    """The field errors of topology spread constraints; of two with equal key and action, the first has one."""
    keys_and_actions = [
        (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")) for constraint in constraints
    ]
    errors = []
    for index, (constraint, key_and_action) in enumerate(zip(constraints, keys_and_actions, strict=True)):
        item_path = f"{path}[{index}]"
        errors += _constraint_errors(constraint, item_path)
        if key_and_action in keys_and_actions[index + 1 :]:
            errors.append(
                duplicate(f"{item_path}.{{topologyKey, whenUnsatisfiable}}", f"{{{', '.join(key_and_action)}}}")
            )
    return errors


def _constraint_errors(constraint: Object, path: str) -> list[FieldError]:
    """Errors of a topology spread constraint: its skew, key, action, domains, policies and selector."""
    max_skew, action = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
    errors = checks.holds(max_skew > 0, f"{path}.maxSkew", max_skew, "must be greater than zero")
    errors += checks.present(constraint.get("topologyKey"), f"{path}.topologyKey", "can not be empty")
    errors += checks.one_of(action, f"{path}.whenUnsatisfiable", _UNSATISFIABLE_ACTIONS)
    if (min_domains := constraint.get("minDomains")) is not None:
        errors += checks.holds(min_domains > 0, f"{path}.minDomains", min_domains, "must be greater than zero")
        message = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors += checks.holds(action == "DoNotSchedule", f"{path}.minDomains", min_domains, message)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        errors += checks.optional_one_of(constraint.get(field), f"{path}.{field}", _NODE_INCLUSION_POLICIES)
    errors += _label_key_errors(constraint, "matchLabelKeys", path)
    return errors + label_selector.validate(constraint.get("labelSelector") or {}, f"{path}.labelSelector")


def toleration_errors(toleration: Object, path: str) -> list[FieldError]:
    """The field errors of the toleration at `path`."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, taint_value = toleration.get("effect", ""), toleration.get("value", "")
    field_path = f"{path}.operator"  # also of errors of the value, as in kube-apiserver
    errors = checks.well_formed(key, f"{path}.key", names.label_key_errors) if key else []
    if not key and operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(field_path, operator, message))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        message = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, message))
    if operator in ("", "Equal"):
        errors += checks.well_formed(taint_value, field_path, names.label_value_errors)
    elif operator == "Exists":
        if taint_value:
            errors.append(invalid(field_path, taint_value, "value must be empty when `operator` is 'Exists'"))
    else:
        operators = ("Equal", "Exists", "Lt", "Gt") if operator in _GATED_OPERATORS else ("Equal", "Exists")
        errors.append(not_supported(field_path, operator, operators))
    if effect and effect not in _TAINT_EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _TAINT_EFFECTS))
    return errors
