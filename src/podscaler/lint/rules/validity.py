"""Lint rules about objects that an API server rejects: PSL000 API errors, PSL017 zero replicas, PSL018 old versions.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/api.md 2 (Validation), 6 (Older versions); the deprecation guide of Kubernetes.
"""

import difflib
import re
from collections.abc import Iterator

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.schema import schema
from podscaler.lint.model.findings import RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext, is_autoscaler
from podscaler.lint.model.linted_item import APIError, Item

_ZERO_ERROR_END = "to support scaling to zero replicas"
"""The end of the API error that PSL017 reports in place of PSL000."""


@rule("PSL000", "refused", Severity.ERROR, "The API server would refuse the object.")
def refused(context: LintContext) -> Iterator[RuleFinding]:
    """PSL000: an API error with which the API server would reject the object."""
    for item in context.items:
        for api_error in item.api_errors:
            if not _is_about_zero(item, api_error):
                message = f"{api_error.field}: {api_error.text}" if api_error.field else api_error.text
                yield RuleFinding(item, api_error.field, message, _fix(item, api_error))


_UNKNOWN_FIELD = re.compile(r'unknown field "(?P<path>[^"]+)"')
_REPEATED_FIELD = re.compile(r'duplicate field "(?P<path>[^"]+)"')
_SUPPORTED = re.compile(r"^Unsupported value: .*: supported values: (?P<values>.+)$", re.DOTALL)
_LIMIT = re.compile(r"must be (?P<how>greater than or equal to|greater than|less than or equal to) (?P<limit>[^ ,;]+)$")
_LIMIT_PHRASES = {
    "greater than or equal to": "{} or more",
    "greater than": "more than {}",
    "less than or equal to": "{} or less",
}
_NO_OBJECT = "write one Kubernetes object in each document, with apiVersion and kind"


def _fix(item: Item, api_error: APIError) -> str:
    """How to correct an API error, derived from its text; a new form of text: a pattern above, and a case here."""
    if unknown := _UNKNOWN_FIELD.search(api_error.text):
        return _fix_of_unknown_field(item, unknown["path"])
    if repeated := _REPEATED_FIELD.search(api_error.text):
        return f"write {repeated['path']} once"
    if not api_error.field:
        return f"see `kubectl explain {item.kind.lower()}` for the fields and their types" if item.kind else _NO_OBJECT
    if api_error.text.startswith("Required value"):
        return f"set {api_error.field}"
    if supported := _SUPPORTED.match(api_error.text):
        return f"set {api_error.field} to one of {supported['values']}"
    if limit := _LIMIT.search(api_error.text):
        return f"set {api_error.field} to {_LIMIT_PHRASES[limit['how']].format(limit['limit'])}"
    if api_error.text.startswith("Forbidden"):
        return f"remove {api_error.field}"
    path = f"{item.kind.lower()}.{_without_indexes(api_error.field)}"
    return f"change {api_error.field}; `kubectl explain {path}` describes it"


def _without_indexes(path: str) -> str:
    return re.sub(r"\[[^]]*\]", "", path)


def _fix_of_unknown_field(item: Item, path: str) -> str:
    """The most similar name of a field, else the advice to remove it."""
    parent, _, name = path.rpartition(".")
    similar_names = difflib.get_close_matches(name, _field_names(item, _without_indexes(parent)), n=1)
    return f"write {similar_names[0]} in place of {name}" if similar_names else f"remove {path}"


def _field_names(item: Item, parent: str) -> list[str]:
    """The names of the fields below a path of an object; none if its type is not known."""
    type_name = schema.find_kind(item.api_version, item.kind)
    for field_name in parent.split(".") if parent else ():
        field = schema.find_field(type_name, field_name) if type_name else None
        type_name = field.type if field and not field.is_scalar else None
    message = schema.find_message(type_name) if type_name else None
    return [field.name for field in message.json_fields()] if message else []


@rule(
    "PSL017",
    "zero-without-waking-metric",
    Severity.ERROR,
    "minReplicas is 0 without a metric of type Object or External.",
)
def zero_without_waking_metric(context: LintContext) -> Iterator[RuleFinding]:
    """PSL017: minReplicas 0 without a metric that could scale the target up from there."""
    for item in context.items:
        if any(_is_about_zero(item, api_error) for api_error in item.api_errors):
            yield RuleFinding(
                item,
                "spec.minReplicas",
                "minReplicas is 0, but no metric could wake the target: metrics of pods say nothing without pods",
                "add a metric of type Object or External, or set minReplicas to 1",
            )


def _is_about_zero(item: Item, api_error: APIError) -> bool:
    """Whether an API error is that of minReplicas 0 without a suitable metric, which PSL017 reports."""
    return is_autoscaler(item) and api_error.field == "spec.metrics" and api_error.text.endswith(_ZERO_ERROR_END)


_WORKLOAD_KINDS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_REMOVAL_VERSION = "1.16"
"""The first version of Kubernetes without _REMOVED_WORKLOAD_VERSIONS."""
_REMOVED_WORKLOAD_VERSIONS = frozenset({"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"})


@rule("PSL018", "removed-api-version", Severity.ERROR, "The object is of a version that Kubernetes no longer serves.")
def removed_api_version(context: LintContext) -> Iterator[RuleFinding]:
    """PSL018: an apiVersion that Kubernetes no longer serves."""
    for item in context.items:
        warning, fix = _autoscaler_warning(item) if is_autoscaler(item) else _workload_warning(item)
        if warning:
            yield RuleFinding(item, "apiVersion", warning, fix)


def _autoscaler_warning(item: Item) -> tuple[str, str]:
    """The warning about an autoscaler's version, empty if there is none, and the fix."""
    version = conversion.VERSIONS.get(item.api_version)
    return version.deprecation if version else "", "podscaler convert FILE --to autoscaling/v2"


def _workload_warning(item: Item) -> tuple[str, str]:
    """The warning about a workload's version, empty if there is none, and the fix."""
    if item.kind not in _WORKLOAD_KINDS or item.api_version not in _REMOVED_WORKLOAD_VERSIONS:
        return "", ""
    return f"{item.api_version} {item.kind} is unavailable in v{_REMOVAL_VERSION}+", "write apps/v1, with a selector"
