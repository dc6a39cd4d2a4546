"""Validates a Job's policies: pod failure, success, replacement of pods, and limits of indexed Jobs.

`api.kinds.apps.job` calls it with the spec of a Job, which has all defaults; `cronjob` only `set_defaults`. Paths of
errors start with `spec`. A new policy: a function that `policy_errors` calls.

Source: the API reference of batch/v1; kube-apiserver's validation messages.
"""

from typing import Final

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required, too_long, too_many
from podscaler.api.resource import checks, go_struct, references
from podscaler.api.resource.resources import Object

_INDEXED: Final = "Indexed"
_RULES_MAX: Final = 20
_CONDITIONS_MAX: Final = 20
_EXIT_CODES_MAX: Final = 255
_INDEXES_MAX_BYTES: Final = 64 * 1024
_MANAGED_BY_MAX_BYTES: Final = 63
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_CONDITION_STATUSES: Final = ("False", "True", "Unknown")
_REPLACEMENT_POLICIES: Final = ("Failed", "TerminatingOrFailed")
_FAILED_INDEXES_MAX: Final = 100_000
_COMPLETIONS_SOFT_MAX: Final = 100_000
"""Above this number of completions, a back-off limit per index limits parallelism to _LIMIT_ABOVE_SOFT_MAX."""
_LIMIT_ABOVE_SOFT_MAX: Final = 10_000
"""The most parallel pods, and the most failed indexes, of a Job with more than _COMPLETIONS_SOFT_MAX completions."""
_FAILURE_RULES_PATH: Final = "spec.podFailurePolicy.rules"
_SUCCESS_RULES_PATH: Final = "spec.successPolicy.rules"


class _IndexesError(ValueError):
    """A text is not a list of indexes (`1,3-5`); the message is kube-apiserver's."""


def set_defaults(spec: Object) -> None:
    """The API default of the conditions in the pod failure policy of a Job's spec, in place."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for condition in rule.get("onPodConditions") or []:
            condition["status"] = condition.get("status") or "True"


def policy_errors(spec: Object) -> list[FieldError]:
    """The field errors, below `spec`, of the policies of a Job's spec with all defaults."""
    return [*_failure_policy_errors(spec), *_success_policy_errors(spec), *_replacement_errors(spec)]


def index_limit_errors(spec: Object) -> list[FieldError]:
    """The errors of `maxFailedIndexes` and `parallelism` of an indexed Job with completions."""
    max_failed, completions, parallelism = spec.get("maxFailedIndexes"), spec["completions"], spec.get("parallelism")
    max_failed_path, errors = "spec.maxFailedIndexes", []
    if max_failed is not None:
        errors += checks.holds(
            max_failed <= completions, max_failed_path, max_failed, "must be less than or equal to completions"
        )
        highest_message = f"must be less than or equal to {_FAILED_INDEXES_MAX}"
        errors += checks.holds(max_failed <= _FAILED_INDEXES_MAX, max_failed_path, max_failed, highest_message)
    if completions <= _COMPLETIONS_SOFT_MAX or spec.get("backoffLimitPerIndex") is None:
        return errors
    if max_failed is None:
        errors.append(required(max_failed_path, f"must be specified when completions is above {_COMPLETIONS_SOFT_MAX}"))
    message = (
        f"must be less than or equal to {_LIMIT_ABOVE_SOFT_MAX} when completions are above {_COMPLETIONS_SOFT_MAX} and "
        "used with backoff limit per index"
    )
    for path, limited_value in (("spec.parallelism", parallelism), (max_failed_path, max_failed)):
        errors += checks.holds(
            limited_value is None or limited_value <= _LIMIT_ABOVE_SOFT_MAX, path, limited_value, message
        )
    return errors


def managed_by_errors(managed_by: str | None) -> list[FieldError]:
    """The errors of `managedBy`; None: it is not set."""
    if managed_by is None:
        return []
    errors = references.domain_path_errors(managed_by, "spec.managedBy")
    is_long = len(managed_by.encode()) > _MANAGED_BY_MAX_BYTES
    return [*errors, too_long("spec.managedBy", _MANAGED_BY_MAX_BYTES)] if is_long else errors


def _replacement_errors(spec: Object) -> list[FieldError]:
    """Field errors of `podReplacementPolicy`; with a pod failure policy only `Failed` is supported."""
    supported = _REPLACEMENT_POLICIES if spec.get("podFailurePolicy") is None else ("Failed",)
    return checks.optional_one_of(spec.get("podReplacementPolicy"), "spec.podReplacementPolicy", supported)


def _failure_policy_errors(spec: Object) -> list[FieldError]:
    """Errors of the pod failure policy: the number of its rules, and each of them."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    rules = policy.get("rules") or []
    errors = [too_many(_FAILURE_RULES_PATH, len(rules), _RULES_MAX)] if len(rules) > _RULES_MAX else []
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    container_names = {
        container.get("name", "")
        for field in ("containers", "initContainers")
        for container in pod_spec.get(field) or []
    }
    return errors + checks.each(
        rules, _FAILURE_RULES_PATH, lambda rule, path: _rule_errors(spec, rule, path, container_names)
    )


def _rule_errors(spec: Object, rule: Object, path: str, container_names: set[str]) -> list[FieldError]:
    """Field errors of a rule of the failure policy, which has either exit codes or conditions of pods.

    Args:
        spec: the spec of the Job.
        rule: an item of `podFailurePolicy.rules`.
        container_names: the containers of the pod template, one of which an exit code may name.
    """
    action, exit_codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if action == "FailIndex":
        message = "requires the backoffLimitPerIndex to be set"
        errors = checks.holds(spec.get("backoffLimitPerIndex") is not None, f"{path}.action", action, message)
    else:
        errors = _choice_errors(action, f"{path}.action", _ACTIONS)
    if exit_codes is not None:
        errors += _exit_code_errors(exit_codes, f"{path}.onExitCodes", container_names)
    if len(conditions) > _CONDITIONS_MAX:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), _CONDITIONS_MAX))
    errors += checks.each(conditions, f"{path}.onPodConditions", _condition_errors)
    detail = ""
    if exit_codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
    elif exit_codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
    # not `invalid`: kube-apiserver does not show the value
    return [*errors, FieldError("FieldValueInvalid", path, f"Invalid value: {detail}")] if detail else errors


def _choice_errors(value: str, path: str, supported: tuple[str, ...]) -> list[FieldError]:
    """Field errors of a missing or unsupported value; the message about a missing one lists `supported`."""
    if value:
        return checks.one_of(value, path, supported)
    quoted_choices = " ".join(f'"{choice}"' for choice in supported)
    return [required(path, f"valid values: [{quoted_choices}]")]


def _condition_errors(condition: Object, path: str) -> list[FieldError]:
    """Field errors of a condition of pods in a rule: its type and status."""
    errors = checks.well_formed(condition.get("type", ""), f"{path}.type", names.label_key_errors)
    return errors + _choice_errors(condition.get("status", ""), f"{path}.status", _CONDITION_STATUSES)


def _exit_code_errors(requirement: Object, path: str, container_names: set[str]) -> list[FieldError]:
    """Field errors of `onExitCodes`: its codes are ordered and unique; `container_names` are those of the template."""
    operator, container_name = requirement.get("operator", ""), requirement.get("containerName")
    errors = _choice_errors(operator, f"{path}.operator", _OPERATORS)
    message = "must be one of the container or initContainer names in the pod template"
    errors += checks.holds(
        container_name is None or container_name in container_names, f"{path}.containerName", container_name, message
    )
    exit_codes: list[int] = requirement.get("values") or []
    values_path = f"{path}.values"
    if not exit_codes:
        errors.append(invalid(values_path, requirement.get("values"), "at least one value is required"))
    elif len(exit_codes) > _EXIT_CODES_MAX:
        errors.append(too_many(values_path, len(exit_codes), _EXIT_CODES_MAX))
    earlier_codes: set[int] = set()
    for index, exit_code in enumerate(exit_codes):
        if operator == "In" and exit_code == 0:
            errors.append(invalid(f"{values_path}[{index}]", exit_code, "must not be 0 for the In operator"))
        errors += checks.not_repeated(exit_code, f"{values_path}[{index}]", earlier_codes)
    return errors + checks.holds(exit_codes == sorted(exit_codes), values_path, exit_codes, "must be ordered")


def _success_policy_errors(spec: Object) -> list[FieldError]:
    """Errors of the success policy, which only Indexed Jobs have."""
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    if spec.get("completionMode") != _INDEXED:
        printed = go_struct.printed(policy, "batch/v1.SuccessPolicy")
        return [invalid("spec.successPolicy", printed, "requires indexed completion mode")]
    rules = policy.get("rules") or []
    if not rules:
        return [
            required(_SUCCESS_RULES_PATH, "at least one rules must be specified when the successPolicy is specified")
        ]
    errors = [too_many(_SUCCESS_RULES_PATH, len(rules), _RULES_MAX)] if len(rules) > _RULES_MAX else []
    completions = spec.get("completions")
    if completions is None:  # reported by the validation of the completion mode
        return errors
    return errors + checks.each(
        rules, _SUCCESS_RULES_PATH, lambda rule, path: _success_rule_errors(rule, path, completions)
    )


def _success_rule_errors(rule: Object, path: str, completions: int) -> list[FieldError]:
    """Errors of a rule of the success policy: indexes, their number, or both."""
    index_list, succeeded_count = rule.get("succeededIndexes"), rule.get("succeededCount")
    index_count = 0  # also that of a malformed list
    errors: list[FieldError] = []
    if succeeded_count is None and index_list is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if index_list is not None:
        indexes_path = f"{path}.succeededIndexes"
        if len(index_list) > _INDEXES_MAX_BYTES:
            errors.append(too_long(indexes_path, _INDEXES_MAX_BYTES))
        try:
            index_count = _count_indexes(index_list, completions)
        except _IndexesError as error:
            errors.append(invalid(indexes_path, index_list, f"error parsing succeededIndexes: {error}"))
    if succeeded_count is not None:
        count_path = f"{path}.succeededCount"
        errors += checks.not_negative(succeeded_count, count_path)
        completions_message = f"must be less than or equal to {completions} (the number of specified completions)"
        errors += checks.holds(succeeded_count <= completions, count_path, succeeded_count, completions_message)
        counted = "indexes in the specified succeededIndexes field"
        index_count_message = f"must be less than or equal to {index_count} (the number of {counted})"
        errors += checks.holds(
            index_list is None or succeeded_count <= index_count, count_path, succeeded_count, index_count_message
        )
    return errors


def _count_indexes(index_list: str, completions: int) -> int:
    """The number of indexes in a list like `0,2-5`; 0 for an empty text.

    Raises:
        _IndexesError: the list is malformed, not in increasing order, or has an index that is not below `completions`.
    """
    if not index_list:
        return 0
    index_count, previous_end = 0, None
    for interval in index_list.split(","):
        start, end = _parse_interval(interval, completions)
        if previous_end is not None and previous_end >= start:
            raise _IndexesError(f"non-increasing order, previous: {previous_end}, current: {start}")
        index_count, previous_end = index_count + end - start + 1, end
    return index_count


def _parse_interval(interval: str, completions: int) -> tuple[int, int]:
    """The first and last index of `3` or `3-5`. Raises _IndexesError."""
    bound_texts = interval.split("-")
    if len(bound_texts) > 2:
        raise _IndexesError(
            f'the fragment "{interval}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    bounds = [_parse_index(bound_text, completions) for bound_text in bound_texts]
    if len(bounds) == 2 and bounds[0] >= bounds[1]:
        raise _IndexesError(f"non-increasing order, previous: {bounds[0]}, current: {bounds[1]}")
    return bounds[0], bounds[-1]


def _parse_index(index_text: str, completions: int) -> int:
    """An index below `completions`. Raises _IndexesError."""
    digits = index_text.removeprefix("+")  # a sign, which Go's strconv.Atoi allows
    if not (digits.isascii() and digits.isdigit()):
        raise _IndexesError(f'cannot convert string to integer for index: "{index_text}"')
    if int(digits) >= completions:
        raise _IndexesError(f'too large index: "{index_text}"')
    return int(digits)
