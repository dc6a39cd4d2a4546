"""Lint rules about objects that an API server rejects: PSL000 API errors, PSL017 zero replicas, PSL018 old versions.

Source: docs/spec/api.md 2 (Validation), 6 (Older versions); the deprecation guide of Kubernetes.
"""

import difflib
import re
from collections.abc import Iterator

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.schema import schema
from podscaler.lint.model.findings import RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext, is_autoscaler
from podscaler.lint.model.linted_item import APIFinding, Item

_ZERO = "to support scaling to zero replicas"


@rule("PSL000", "refused", Severity.ERROR, "The API server would refuse the object.")
def refused(context: LintContext) -> Iterator[RuleFinding]:
    """PSL000: an API error with which the API server would reject the object."""
    for item in context.items:
        for fault in item.faults:
            if not _is_about_zero(item, fault):
                message = f"{fault.field}: {fault.text}" if fault.field else fault.text
                yield RuleFinding(item, fault.field, message, _fix(item, fault))


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


def _fix(item: Item, fault: APIFinding) -> str:
    """How to correct the fault, derived from the text of the API error."""
    if unknown := _UNKNOWN_FIELD.search(fault.text):
        return _fix_of_unknown(item, unknown["path"])
    if repeated := _REPEATED_FIELD.search(fault.text):
        return f"write {repeated['path']} once"
    if not fault.field:
        return f"see `kubectl explain {item.kind.lower()}` for the fields and their types" if item.kind else _NO_OBJECT
    if fault.text.startswith("Required value"):
        return f"set {fault.field}"
    if supported := _SUPPORTED.match(fault.text):
        return f"set {fault.field} to one of {supported['values']}"
    if limit := _LIMIT.search(fault.text):
        return f"set {fault.field} to {_LIMIT_PHRASES[limit['how']].format(limit['limit'])}"
    if fault.text.startswith("Forbidden"):
        return f"remove {fault.field}"
    return f"change {fault.field}; `kubectl explain {item.kind.lower()}.{_without_indexes(fault.field)}` describes it"


def _without_indexes(path: str) -> str:
    return re.sub(r"\[[^]]*\]", "", path)


def _fix_of_unknown(item: Item, path: str) -> str:
    """The most similar name of a field, else the advice to remove it."""
    parent, _, name = path.rpartition(".")
    similar_names = difflib.get_close_matches(name, _fields(item, _without_indexes(parent)), n=1)
    return f"write {similar_names[0]} in place of {name}" if similar_names else f"remove {path}"


def _fields(item: Item, parent: str) -> list[str]:
    """The names of the fields below a path of an object; none if its type is not known."""
    name = schema.find_kind(item.api_version, item.kind)
    for field_name in parent.split(".") if parent else ():
        member = schema.find_field(name, field_name) if name else None
        name = member.type if member and not member.is_scalar else None
    message = schema.find_message(name) if name else None
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
        if any(_is_about_zero(item, fault) for fault in item.faults):
            yield RuleFinding(
                item,
                "spec.minReplicas",
                "minReplicas is 0, but no metric could wake the target: metrics of pods say nothing without pods",
                "add a metric of type Object or External, or set minReplicas to 1",
            )


def _is_about_zero(item: Item, fault: APIFinding) -> bool:
    return is_autoscaler(item) and fault.field == "spec.metrics" and fault.text.endswith(_ZERO)


_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_WORKLOADS_GONE = "1.16"
_WORKLOAD_VERSIONS = frozenset({"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"})


@rule("PSL018", "removed-api-version", Severity.ERROR, "The object is of a version that Kubernetes no longer serves.")
def removed_api_version(context: LintContext) -> Iterator[RuleFinding]:
    """PSL018: an apiVersion that Kubernetes no longer serves."""
    for item in context.items:
        warning, fix = _autoscaler(item) if is_autoscaler(item) else _workload(item)
        if warning:
            yield RuleFinding(item, "apiVersion", warning, fix)


def _autoscaler(item: Item) -> tuple[str, str]:
    """The warning about an autoscaler's version, empty if there is none, and the fix."""
    version = conversion.VERSIONS.get(item.api_version)
    return version.deprecation if version else "", "podscaler convert FILE --to autoscaling/v2"


def _workload(item: Item) -> tuple[str, str]:
    """The warning about a workload's version, empty if there is none, and the fix."""
    if item.kind not in _WORKLOADS or item.api_version not in _WORKLOAD_VERSIONS:
        return "", ""
    return f"{item.api_version} {item.kind} is unavailable in v{_WORKLOADS_GONE}+", "write apps/v1, with a selector"
