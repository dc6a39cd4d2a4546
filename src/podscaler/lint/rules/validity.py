"""Objects that the API server would refuse: PSL000 for every fault, PSL017 for the one that zero replicas make.

Source: docs/spec/api.md 2 (Validation).
"""

import difflib
import re
from collections.abc import Iterator

from podscaler.api.schema import schema
from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.items import APIFinding, Item
from podscaler.lint.model.lint_context import Material, is_autoscaler

_ZERO = "to support scaling to zero replicas"


def _refused(material: Material) -> Iterator[RuleFinding]:
    for item in material.items:
        for fault in item.faults:
            if not _is_about_zero(item, fault):
                message = f"{fault.field}: {fault.text}" if fault.field else fault.text
                yield RuleFinding(item, fault.field, message, _fix(item, fault))


_UNKNOWN = re.compile(r'unknown field "(?P<path>[^"]+)"')
_REPEATED = re.compile(r'duplicate field "(?P<path>[^"]+)"')
_SUPPORTED = re.compile(r"^Unsupported value: .*: supported values: (?P<values>.+)$", re.DOTALL)
_LIMIT = re.compile(r"must be (?P<how>greater than or equal to|greater than|less than or equal to) (?P<limit>[^ ,;]+)$")
_LIMITED = {
    "greater than or equal to": "{} or more",
    "greater than": "more than {}",
    "less than or equal to": "{} or less",
}
_NO_OBJECT = "write one Kubernetes object in each document, with apiVersion and kind"


def _fix(item: Item, fault: APIFinding) -> str:
    """What to write instead, as far as the words of the API server tell."""
    if unknown := _UNKNOWN.search(fault.text):
        return _fix_of_unknown(item, unknown["path"])
    if repeated := _REPEATED.search(fault.text):
        return f"write {repeated['path']} once"
    if not fault.field:
        return f"see `kubectl explain {item.kind.lower()}` for the fields and their types" if item.kind else _NO_OBJECT
    if fault.text.startswith("Required value"):
        return f"set {fault.field}"
    if supported := _SUPPORTED.match(fault.text):
        return f"set {fault.field} to one of {supported['values']}"
    if limit := _LIMIT.search(fault.text):
        return f"set {fault.field} to {_LIMITED[limit['how']].format(limit['limit'])}"
    if fault.text.startswith("Forbidden"):
        return f"remove {fault.field}"
    return f"change {fault.field}; `kubectl explain {item.kind.lower()}.{_without_indexes(fault.field)}` describes it"


def _without_indexes(path: str) -> str:
    return re.sub(r"\[[^]]*\]", "", path)


def _fix_of_unknown(item: Item, path: str) -> str:
    """The name that was probably meant, else that the field goes."""
    parent, _, name = path.rpartition(".")
    close = difflib.get_close_matches(name, _fields(item, _without_indexes(parent)), n=1)
    return f"write {close[0]} in place of {name}" if close else f"remove {path}"


def _fields(item: Item, parent: str) -> list[str]:
    """The names of the fields below a path of an object; none where its type is not known."""
    name = schema.find_kind(item.api_version, item.kind)
    for part in parent.split(".") if parent else ():
        found = schema.find_field(name, part) if name else None
        name = found.type if found and not found.is_scalar else None
    message = schema.find_message(name) if name else None
    return [each.name for each in message.json_fields()] if message else []


def _without_waking_metric(material: Material) -> Iterator[RuleFinding]:
    for item in material.items:
        if any(_is_about_zero(item, fault) for fault in item.faults):
            yield RuleFinding(
                item,
                "spec.minReplicas",
                "minReplicas is 0, but no metric could wake the target: metrics of pods say nothing without pods",
                "add a metric of type Object or External, or set minReplicas to 1",
            )


def _is_about_zero(item: Item, fault: APIFinding) -> bool:
    return is_autoscaler(item) and fault.field == "spec.metrics" and fault.text.endswith(_ZERO)


REFUSED = Rule("PSL000", "refused", Severity.ERROR, "The API server would refuse the object.", _refused)
ZERO = Rule(
    "PSL017",
    "zero-without-waking-metric",
    Severity.ERROR,
    "minReplicas is 0 without a metric of type Object or External.",
    _without_waking_metric,
)
