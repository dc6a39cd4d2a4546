"""Validation of a Job's policies: pod failure, success, replacement of pods, and limits of indexed Jobs.

`job` and `cronjob` call it. Source: the API reference of batch/v1;
kube-apiserver's validation messages.
"""

from typing import Final

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, duplicate, invalid, required, too_long, too_many
from podscaler.api.resource import checks, go_struct, references
from podscaler.api.resource.resources import Object

INDEXED: Final = "Indexed"
RULES_MAX: Final = 20
EXIT_CODES_MAX: Final = 255
INDEXES_MAX_BYTES: Final = 64 * 1024
MANAGER_MAX_BYTES: Final = 63
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")
REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
MANY_COMPLETIONS: Final = 100_000
"""Above this number of completions, a Job with a back-off limit for each index is limited to MANY_MAX in parallel."""
MANY_MAX: Final = 10_000
_FAILURE_RULES_PATH: Final = "spec.podFailurePolicy.rules"
_SUCCESS_RULES_PATH: Final = "spec.successPolicy.rules"


class IndexesError(ValueError):
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
    failed, completions, parallelism = spec.get("maxFailedIndexes"), spec["completions"], spec.get("parallelism")
    field, errors = "spec.maxFailedIndexes", []
    if failed is not None:
        errors += checks.holds(failed <= completions, field, failed, "must be less than or equal to completions")
        text = f"must be less than or equal to {MANY_COMPLETIONS}"
        errors += checks.holds(failed <= MANY_COMPLETIONS, field, failed, text)
    if completions <= MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return errors
    if failed is None:
        errors.append(required(field, f"must be specified when completions is above {MANY_COMPLETIONS}"))
    text = (
        f"must be less than or equal to {MANY_MAX} when completions are above {MANY_COMPLETIONS} and used with backoff "
        "limit per index"
    )
    for name, value in (("spec.parallelism", parallelism), (field, failed)):
        errors += checks.holds(value is None or value <= MANY_MAX, name, value, text)
    return errors


def manager_errors(manager: str | None) -> list[FieldError]:
    """The errors of `managedBy`; `manager` is None if it is not set."""
    if manager is None:
        return []
    errors = references.domain_path_errors(manager, "spec.managedBy")
    is_long = len(manager.encode()) > MANAGER_MAX_BYTES
    return [*errors, too_long("spec.managedBy", MANAGER_MAX_BYTES)] if is_long else errors


def _replacement_errors(spec: Object) -> list[FieldError]:
    supported = REPLACEMENTS if spec.get("podFailurePolicy") is None else REPLACEMENTS[:1]
    return checks.optional_one_of(spec.get("podReplacementPolicy"), "spec.podReplacementPolicy", supported)


def _failure_policy_errors(spec: Object) -> list[FieldError]:
    """Errors of the pod failure policy."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    rules = policy.get("rules") or []
    errors = [too_many(_FAILURE_RULES_PATH, len(rules), RULES_MAX)] if len(rules) > RULES_MAX else []
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {
        container.get("name", "") for group in ("containers", "initContainers") for container in pod.get(group) or []
    }
    return errors + checks.each(
        rules, _FAILURE_RULES_PATH, lambda rule, path: _rule_errors(spec, rule, path, containers)
    )


def _rule_errors(spec: Object, rule: Object, path: str, containers: set[str]) -> list[FieldError]:
    """Errors of a rule of the failure policy: either exit codes or conditions of pods."""
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if action == "FailIndex":
        message = "requires the backoffLimitPerIndex to be set"
        errors = checks.holds(spec.get("backoffLimitPerIndex") is not None, f"{path}.action", action, message)
    else:
        errors = _choice_errors(action, f"{path}.action", ACTIONS)
    if codes is not None:
        errors += _exit_code_errors(codes, f"{path}.onExitCodes", containers)
    if len(conditions) > RULES_MAX:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), RULES_MAX))
    errors += checks.each(conditions, f"{path}.onPodConditions", _condition_errors)
    if (codes is not None) == bool(conditions):
        which = "both OnExitCodes and OnPodConditions is not supported"
        text = f"specifying {which if conditions else 'one of OnExitCodes and OnPodConditions is required'}"
        errors.append(FieldError("FieldValueInvalid", path, f"Invalid value: {text}"))
    return errors


def _choice_errors(value: str, path: str, supported: tuple[str, ...]) -> list[FieldError]:
    if value:
        return checks.one_of(value, path, supported)
    return [required(path, f"valid values: [{' '.join(f'{chr(34)}{choice}{chr(34)}' for choice in supported)}]")]


def _condition_errors(condition: Object, path: str) -> list[FieldError]:
    errors = checks.well_formed(condition.get("type", ""), f"{path}.type", names.label_key_errors)
    return errors + _choice_errors(condition.get("status", ""), f"{path}.status", STATUSES)


def _exit_code_errors(requirement: Object, path: str, containers: set[str]) -> list[FieldError]:
    """Errors of exit codes: ordered, unique, and not 0 for `In`."""
    operator, container = requirement.get("operator", ""), requirement.get("containerName")
    errors = _choice_errors(operator, f"{path}.operator", OPERATORS)
    message = "must be one of the container or initContainer names in the pod template"
    errors += checks.holds(container is None or container in containers, f"{path}.containerName", container, message)
    values: list[int] = requirement.get("values") or []
    field = f"{path}.values"
    if not values:
        errors.append(invalid(field, requirement.get("values"), "at least one value is required"))
    elif len(values) > EXIT_CODES_MAX:
        errors.append(too_many(field, len(values), EXIT_CODES_MAX))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{field}[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{field}[{index}]", value))
        seen.add(value)
    return errors + checks.holds(values == sorted(values), field, values, "must be ordered")


def _success_policy_errors(spec: Object) -> list[FieldError]:
    """Errors of the success policy, which only Indexed Jobs have."""
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    if spec.get("completionMode") != INDEXED:
        printed = go_struct.printed(policy, "batch/v1.SuccessPolicy")
        return [invalid("spec.successPolicy", printed, "requires indexed completion mode")]
    rules = policy.get("rules") or []
    if not rules:
        return [
            required(_SUCCESS_RULES_PATH, "at least one rules must be specified when the successPolicy is specified")
        ]
    errors = [too_many(_SUCCESS_RULES_PATH, len(rules), RULES_MAX)] if len(rules) > RULES_MAX else []
    completions = spec.get("completions")
    if completions is None:  # an error of its own
        return errors
    return errors + checks.each(
        rules, _SUCCESS_RULES_PATH, lambda rule, path: _success_rule_errors(rule, path, completions)
    )


def _success_rule_errors(rule: Object, path: str, completions: int) -> list[FieldError]:
    """Errors of a rule of the success policy: indexes, their number, or both."""
    indexes, count, total = rule.get("succeededIndexes"), rule.get("succeededCount"), 0
    errors: list[FieldError] = []
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if indexes is not None:
        field = f"{path}.succeededIndexes"
        if len(indexes) > INDEXES_MAX_BYTES:
            errors.append(too_long(field, INDEXES_MAX_BYTES))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            errors.append(invalid(field, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        field, text = f"{path}.succeededCount", "must be less than or equal to {} (the number of {})"
        errors += checks.not_negative(count, field)
        of_job = text.format(completions, "specified completions")
        errors += checks.holds(count <= completions, field, count, of_job)
        of_indexes = text.format(total, "indexes in the specified succeededIndexes field")
        errors += checks.holds(indexes is None or count <= total, field, count, of_indexes)
    return errors


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text like `0,2-5` has, in increasing order, each below `completions`. Raises IndexesError."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        first, end = _parse_interval(interval, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def _parse_interval(interval: str, completions: int) -> tuple[int, int]:
    """The first and last index of `3` or `3-5`. Raises IndexesError."""
    parts = interval.split("-")
    if len(parts) > 2:
        raise IndexesError(
            f'the fragment "{interval}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    limits = [_parse_index(part, completions) for part in parts]
    if len(limits) == 2 and limits[0] >= limits[1]:
        raise IndexesError(f"non-increasing order, previous: {limits[0]}, current: {limits[1]}")
    return limits[0], limits[-1]


def _parse_index(text: str, completions: int) -> int:
    """An index below `completions`. Raises IndexesError."""
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise IndexesError(f'cannot convert string to integer for index: "{text}"')
    if int(digits) >= completions:
        raise IndexesError(f'too large index: "{text}"')
    return int(digits)
