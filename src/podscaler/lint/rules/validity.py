"""Objects that the API server would refuse: PSL000 for every fault, PSL017 for the one that zero replicas make.

Source: spec/api.md 2.
"""

from collections.abc import Iterator

from podscaler.lint.findings import Found, Rule, Severity
from podscaler.lint.items import Fault, Item
from podscaler.lint.material import Material, is_autoscaler

_ZERO = "to support scaling to zero replicas"


def _refused(material: Material) -> Iterator[Found]:
    for item in material.items:
        for fault in item.faults:
            if not _is_about_zero(item, fault):
                message = f"{fault.field}: {fault.text}" if fault.field else fault.text
                yield Found(item, fault.field, message, "write what the API server accepts")


def _without_waking_metric(material: Material) -> Iterator[Found]:
    for item in material.items:
        if any(_is_about_zero(item, fault) for fault in item.faults):
            yield Found(
                item,
                "spec.minReplicas",
                "minReplicas is 0, but no metric could wake the target: metrics of pods say nothing without pods",
                "add a metric of type Object or External, or set minReplicas to 1",
            )


def _is_about_zero(item: Item, fault: Fault) -> bool:
    return is_autoscaler(item) and fault.field == "spec.metrics" and fault.text.endswith(_ZERO)


REFUSED = Rule("PSL000", "refused", Severity.ERROR, "The API server would refuse the object.", _refused)
ZERO = Rule(
    "PSL017",
    "zero-without-waking-metric",
    Severity.ERROR,
    "minReplicas is 0 without a metric of type Object or External.",
    _without_waking_metric,
)
