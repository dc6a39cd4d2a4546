"""API versions that clusters no longer serve (PSL018).

Source: docs/spec/api.md 6 (Older versions); the deprecation guide of Kubernetes.
"""

from collections.abc import Iterator

from podscaler.api.kinds.autoscaling import conversion
from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.items import Item
from podscaler.lint.model.lint_context import Material, is_autoscaler

_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_WORKLOADS_GONE = "1.16"
_WORKLOAD_VERSIONS = frozenset({"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"})


def _removed(material: Material) -> Iterator[RuleFinding]:
    for item in material.items:
        warning, fix = _autoscaler(item) if is_autoscaler(item) else _workload(item)
        if warning:
            yield RuleFinding(item, "apiVersion", warning, fix)


def _autoscaler(item: Item) -> tuple[str, str]:
    version = conversion.VERSIONS.get(item.api_version)
    return version.deprecation if version else "", "podscaler convert FILE --to autoscaling/v2"


def _workload(item: Item) -> tuple[str, str]:
    if item.kind not in _WORKLOADS or item.api_version not in _WORKLOAD_VERSIONS:
        return "", ""
    return f"{item.api_version} {item.kind} is unavailable in v{_WORKLOADS_GONE}+", "write apps/v1, with a selector"


REMOVED = Rule(
    "PSL018",
    "removed-api-version",
    Severity.ERROR,
    "The object is of a version that Kubernetes no longer serves.",
    _removed,
)
