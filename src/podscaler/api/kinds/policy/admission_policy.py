"""Resource definitions of ValidatingAdmissionPolicy and its binding (admissionregistration.k8s.io/v1).

POLICY and BINDING, at the end, register the functions above them as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists them, and `podscaler.controlplane.apiserver.webhooks.admission_policies` applies them.
`admission_expressions` compiles expressions. A new field with an expression: a check in `_expression_errors`.

Source: kube-apiserver's defaults and validation of the group. Differs: expressions that an update keeps are checked
again; types of the expressions are not checked against the schemas of objects (`status.typeChecking` stays empty).
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from podscaler.api.kinds.policy import webhook_validation
from podscaler.api.kinds.policy.webhookconfiguration import GROUP
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, label_selector, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

if TYPE_CHECKING:
    from podscaler.api.kinds.policy.admission_expressions import PolicyCompiler

_UNSET: Final = "<unset>"
"""The cell of a table for parameters that a policy or binding does not have."""
_AUDIT_ANNOTATIONS_MAX: Final = 20
_VALUE_EXPRESSION_MAX_BYTES: Final = 5 * 1024
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_VALIDATION_ACTIONS: Final = ("Audit", "Deny", "Warn")
_LINE_BREAKS: Final = re.compile(r"[\n\r]")
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")


def _set_match_defaults(match_resources: Object | None) -> None:
    """API defaults of MatchResources, in place: equivalent resources, all namespaces, objects and scopes."""
    if match_resources is None:
        return
    match_resources.setdefault("matchPolicy", "Equivalent")
    match_resources.setdefault("namespaceSelector", {})
    match_resources.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in match_resources.get(field) or []:
            rule.setdefault("scope", "*")


def _set_policy_defaults(policy: Object) -> None:
    """API defaults of a policy, in place: it fails closed; those of its matchConstraints; an empty status."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _set_match_defaults(spec.get("matchConstraints"))
    policy.setdefault("status", {})


def _set_binding_defaults(binding: Object) -> None:
    _set_match_defaults(binding.setdefault("spec", {}).get("matchResources"))


def _validate_policy(new: Object, old: Object | None) -> list[FieldError]:
    """Errors of a policy; match conditions are not compiled again if an update leaves them as they are."""
    spec, constraints = new["spec"], new["spec"].get("matchConstraints")
    errors = checks.one_of(spec.get("failurePolicy"), "spec.failurePolicy", ("Fail", "Ignore"))
    errors += checks.optional(spec.get("paramKind"), "spec.paramKind", _param_kind_errors)
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _match_errors(constraints, "spec.matchConstraints")
        errors += checks.present(constraints.get("resourceRules"), "spec.matchConstraints.resourceRules")
    conditions = spec.get("matchConditions") or []
    if old is None or conditions != (old["spec"].get("matchConditions") or []):
        has_params = spec.get("paramKind") is not None
        errors += webhook_validation.condition_errors(conditions, "spec.matchConditions", has_params=has_params)
    return errors + _expression_errors(new["metadata"].get("name", ""), spec)


def _param_kind_errors(param_kind: Object, path: str) -> list[FieldError]:
    """Errors of the apiVersion and kind of a policy's parameters."""
    api_version, kind_name = param_kind.get("apiVersion", ""), param_kind.get("kind", "")
    if not api_version:
        errors = [required(f"{path}.apiVersion")]
    else:
        group, _, version = api_version.rpartition("/")
        errors = checks.well_formed_if_set(group, f"{path}.apiVersion", names.dns_subdomain_errors)
        errors += checks.well_formed(version, f"{path}.apiVersion", names.dns_1035_label_errors)
    if not kind_name:
        return [*errors, required(f"{path}.kind")]
    messages = names.dns_1035_label_errors(kind_name.lower())
    message = "may have mixed case, but should otherwise match: " + ",".join(messages)
    return [*errors, invalid(f"{path}.kind", kind_name, message)] if messages else errors


def _match_errors(match_resources: Object, path: str) -> list[FieldError]:
    """Field errors of MatchResources (of a policy or binding): its selectors and rules."""
    errors = checks.one_of(match_resources.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector.validate(match_resources.get(field) or {}, f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        errors += checks.each(match_resources.get(field), f"{path}.{field}", _rule_errors)
    return errors


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    """Field errors of a rule: its resource names, and what rules of webhooks have as well."""
    errors: list[FieldError] = []
    earlier_names: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or []):
        field_path = f"{path}.resourceNames[{index}]"
        errors += checks.well_formed(name, field_path, names.path_segment_errors)
        errors += checks.not_repeated(name, field_path, earlier_names)
    return errors + webhook_validation.rule_errors(rule, path)


def _expression_errors(policy_name: str, spec: Object) -> list[FieldError]:
    """The field errors of variables, validations and audit annotations; all their expressions are compiled.

    Args:
        policy_name: the prefix of the keys of audit annotations.
        spec: the spec of the policy.
    """
    from podscaler.api.kinds.policy.admission_expressions import PolicyCompiler  # importing CEL is slow

    compiler = PolicyCompiler(has_params=spec.get("paramKind") is not None, is_composed=bool(spec.get("variables")))
    errors: list[FieldError] = []
    for index, variable in enumerate(spec.get("variables") or []):
        errors += _variable_errors(variable, f"spec.variables[{index}]", compiler)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        message = "validations or auditAnnotations must contain at least one item"
        return [*errors, required("spec.validations", message), required("spec.auditAnnotations", message)]
    errors += checks.each(validations, "spec.validations", lambda rule, path: _validation_errors(rule, path, compiler))
    if len(annotations) > _AUDIT_ANNOTATIONS_MAX:
        message = f"must not have more than {_AUDIT_ANNOTATIONS_MAX} auditAnnotations"
        errors.append(invalid("spec.auditAnnotations", annotations, message))
    earlier_keys: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", annotation.get("key", "")
        errors += checks.well_formed(f"{policy_name}/{key}", f"{path}.key", names.label_key_errors)
        errors += _value_expression_errors(annotation.get("valueExpression", ""), f"{path}.valueExpression", compiler)
        errors += checks.not_repeated(key, f"{path}.key", earlier_keys)
    return errors


def _variable_errors(variable: Object, path: str, compiler: "PolicyCompiler") -> list[FieldError]:
    """Field errors of one variable, and declares it in `compiler`, so that later expressions may use it."""
    name, expression = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        errors = [required(f"{path}.name", "name is not specified")]
    else:
        is_valid = _IDENTIFIER.fullmatch(name) is not None
        errors = checks.holds(is_valid, f"{path}.name", name, "must be a valid CEL identifier")
    if not expression.strip():
        return [*errors, required(f"{path}.expression", "expression is not specified")]
    message = compiler.add_variable(name, expression)
    return [*errors, invalid(f"{path}.expression", expression, message)] if message else errors


def _validation_errors(validation: Object, path: str, compiler: "PolicyCompiler") -> list[FieldError]:
    """Errors of a validation: its expression, its message or messageExpression, and its reason."""
    expression, message = validation.get("expression", ""), validation.get("message", "")
    message_expression, reason = validation.get("messageExpression", ""), validation.get("reason")
    errors: list[FieldError] = []
    if not expression.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    elif error := compiler.find_error(expression, "bool"):
        errors.append(invalid(f"{path}.expression", expression, error))
    if message_expression and not message_expression.strip():
        errors.append(invalid(f"{path}.messageExpression", message_expression, "must be non-empty if specified"))
    elif message_expression and (error := compiler.find_error(message_expression, "string")):
        errors.append(invalid(f"{path}.messageExpression", message_expression, error))
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _LINE_BREAKS.search(message.strip()):
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    return errors + checks.optional_one_of(reason, f"{path}.reason", _REASONS)


def _value_expression_errors(expression: str, path: str, compiler: "PolicyCompiler") -> list[FieldError]:
    """Field errors of the expression of an audit annotation, whose result must be a string or null."""
    if not expression.strip():
        return [required(path, "valueExpression is not specified")]
    if len(expression.strip().encode()) > _VALUE_EXPRESSION_MAX_BYTES:
        return [required(path, f"must not exceed {_VALUE_EXPRESSION_MAX_BYTES} bytes in length")]  # as upstream
    message = compiler.find_error(expression.strip(), "string", "null")
    return [invalid(path, expression, message)] if message else []


def _validate_binding(new: Object, _old: Object | None) -> list[FieldError]:
    """Errors of a binding: the name of its policy, its parameters, the resources it matches, its actions."""
    spec = new["spec"]
    errors = checks.required_form(spec.get("policyName", ""), "spec.policyName", names.dns_subdomain_errors)
    errors += checks.optional(spec.get("paramRef"), "spec.paramRef", _param_ref_errors)
    errors += checks.optional(spec.get("matchResources"), "spec.matchResources", _match_errors)
    return errors + _action_errors(spec.get("validationActions") or [], "spec.validationActions")


def _param_ref_errors(reference: Object, path: str) -> list[FieldError]:
    """Field errors of the reference to parameters: it has either a name or a selector."""
    name, selector = reference.get("name", ""), reference.get("selector")
    action = reference.get("parameterNotFoundAction")
    has_both = bool(name) and selector is not None
    errors: list[FieldError] = []
    if name:
        errors += checks.well_formed(name, f"{path}.name", names.path_segment_errors)
    if has_both:
        errors.append(forbidden(f"{path}.name", "name and selector are mutually exclusive"))
    if selector is not None:
        errors += label_selector.validate(selector, f"{path}.selector")
    if has_both:
        errors.append(forbidden(f"{path}.selector", "name and selector are mutually exclusive"))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    return errors + checks.required_one_of(action, f"{path}.parameterNotFoundAction", ("Deny", "Allow"))


def _action_errors(actions: Sequence[str], path: str) -> list[FieldError]:
    """Errors of the validation actions; Deny and Warn exclude each other."""
    if not actions:
        return [required(path)]
    errors: list[FieldError] = []
    earlier_actions: set[str] = set()
    for index, action in enumerate(actions):
        errors += checks.one_of(action, f"{path}[{index}]", _VALIDATION_ACTIONS)
        errors += checks.not_repeated(action, f"{path}[{index}]", earlier_actions)
    message = (
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
        "and headers serves no purpose)"
    )
    return errors + checks.holds(not {"Deny", "Warn"} <= earlier_actions, path, actions, message)


def _prepare_create(policy: Object) -> None:
    policy["status"] = {}


def _policy_cells(policy: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: the number of validations, and `GROUP/VERSION/KIND` of the parameters."""
    validations, param_kind = policy["spec"].get("validations") or [], policy["spec"].get("paramKind")
    param_cell = f"{param_kind['apiVersion']}/{param_kind['kind']}" if param_kind else _UNSET
    return [len(validations), param_cell]


def _binding_cells(binding: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: the policy, and `NAMESPACE/NAME` of the parameters or their selector."""
    policy_name = binding["spec"].get("policyName", "")
    reference = binding["spec"].get("paramRef")
    if reference is None:
        return [policy_name, _UNSET]
    name = reference.get("name") or label_selector.text(reference.get("selector"))
    namespace = reference.get("namespace")
    return [policy_name, f"{namespace}/{name}" if namespace else name]


POLICY = Resource(
    group=GROUP,
    plural="validatingadmissionpolicies",
    kind="ValidatingAdmissionPolicy",
    versions=(Version("v1", "admissionregistration/v1.ValidatingAdmissionPolicy", default=_set_policy_defaults),),
    namespaced=False,
    categories=("api-extensions",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=_validate_policy,
        has_generation=True,
        allows_unconditional_update=False,
    ),
    printer=tables.named(
        "policy",
        Column("Validations", "integer", description="The number of its validations."),
        Column("ParamKind", description="The kind of its parameters."),
        cells=_policy_cells,
        note="",
    ),
)
BINDING = Resource(
    group=GROUP,
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
    versions=(
        Version("v1", "admissionregistration/v1.ValidatingAdmissionPolicyBinding", default=_set_binding_defaults),
    ),
    namespaced=False,
    categories=("api-extensions",),
    strategy=Strategy(validate=_validate_binding, has_generation=True, allows_unconditional_update=False),
    printer=tables.named(
        "binding",
        Column("PolicyName", description="The policy that it binds."),
        Column("ParamRef", description="The parameters that the policy gets."),
        cells=_binding_cells,
        note="",
    ),
)
