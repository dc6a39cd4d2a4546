"""The input of lint rules: objects by name, autoscalers with their targets, and what a cluster serves.

`podscaler.lint.linter` makes a LintContext once for a run, and each rule takes it as its only argument;
`podscaler.cli.diagnosis.examination` makes one to find the target. A further fact of a cluster: an attribute of
LintedCluster, read by `podscaler.cli.lint.cluster_reader`.

Invariants: every look-up is by index, so that rules are linear in the number of objects. `LintContext.cluster` is None
for files alone; rules that need it then yield nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from podscaler.api.resource.resources import Object
from podscaler.lint.model import pod_autoscalers
from podscaler.lint.model.linted_item import Item, Key, group_of

HPA_KIND = "HorizontalPodAutoscaler"
HPA_GROUPS = ("autoscaling", "extensions")
"""The groups of HorizontalPodAutoscalers, of all versions that ever were."""
POD_AUTOSCALER = (pod_autoscalers.GROUP, pod_autoscalers.KIND)
_SOURCE_FIELDS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
"""The field of a metric that has the source of its type. A new type of metric: a line here."""


@dataclass(frozen=True, slots=True)
class LintedMetric:
    """One metric of an autoscaler: its type, the source of that type, and the path of the source."""

    type: str
    source: Object
    path: str

    @property
    def target(self) -> Object:
        """The target, as its JSON object; empty if there is none."""
        target: Object = self.source.get("target") or {}
        return target

    @property
    def name(self) -> str:
        """The name under which an adapter serves the metric, empty for resources."""
        name: str = (self.source.get("metric") or {}).get("name", "")
        return name

    @property
    def resource(self) -> str:
        """The measured resource, empty for other metrics."""
        name: str = self.source.get("name", "") if self.type in ("Resource", "ContainerResource") else ""
        return name

    @property
    def container(self) -> str:
        """The measured container of a ContainerResource, empty for other metrics."""
        container: str = self.source.get("container", "")
        return container


@dataclass(frozen=True, slots=True)
class LintedAutoscaler:
    """An autoscaler of either kind that can be decoded.

    Attributes:
        item: the object, whose spec lacks the parts with API errors (`item.api_errors`).
        reference: its scaleTargetRef; empty if there is none.
        target_key: the identity of its target.
        target: the target; None if it is not among the objects.
        metrics: in order; where the spec has none, the API's default metric.
    """

    item: Item
    reference: Object
    target_key: Key
    target: Item | None
    metrics: tuple[LintedMetric, ...]

    @property
    def min_replicas(self) -> int:
        """minReplicas, with the API's default 1."""
        replicas: int = self.item.spec.get("minReplicas", 1)
        return replicas

    @property
    def max_replicas(self) -> int:
        """maxReplicas; 0 if that is missing, which is an API error."""
        replicas: int = self.item.spec.get("maxReplicas", 0)
        return replicas

    def scaling_rules(self, direction: str) -> Object:
        """The behavior of `scaleUp` or `scaleDown`, with defaults; empty without a behavior."""
        rules_of_direction: Object = (self.item.spec.get("behavior") or {}).get(direction) or {}
        return rules_of_direction

    def is_disabled(self, direction: str) -> bool:
        """Whether the selectPolicy of the direction is Disabled."""
        return self.scaling_rules(direction).get("selectPolicy") == "Disabled"


@dataclass(frozen=True, slots=True)
class LintedCluster:
    """What discovery shows of a cluster.

    Attributes:
        listed: the groups and kinds (lower case) of which all objects are among the items.
        scalable: whether a group and kind (lower case) is served with a scale; kinds that are not served, or whose
            discovery failed, are missing.
        unserved: the groups and kinds that the cluster does not serve.
        metrics: for each group of the metrics APIs the metrics that discovery lists, None if it is not served;
            groups whose discovery failed are missing.
    """

    listed: frozenset[tuple[str, str]] = frozenset()
    scalable: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    unserved: frozenset[tuple[str, str]] = frozenset()
    metrics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)


class LintContext:
    """The objects, and what a cluster serves, that rules check, of one run of the linter.

    Args:
        items: all objects; of several with the same identity `find` returns the first.
        cluster: what discovery shows of the cluster; None if only files are linted.
    """

    def __init__(self, items: Iterable[Item], cluster: LintedCluster | None = None) -> None:
        self.items: Sequence[Item] = tuple(items)
        self.cluster = cluster
        self._by_key: dict[Key, Item] = {}
        self._by_kind: dict[tuple[str, str], list[Item]] = defaultdict(list)
        self._by_kind_and_namespace: dict[tuple[str, str, str], list[Item]] = defaultdict(list)
        for item in self.items:
            self._by_key.setdefault(item.key, item)
            self._by_kind[item.group, item.kind.lower()].append(item)
            self._by_kind_and_namespace[item.group, item.kind.lower(), item.namespace].append(item)
        self.autoscalers: Sequence[LintedAutoscaler] = tuple(
            self._make_autoscaler(item) for item in self.items if is_autoscaler(item) and item.obj
        )

    def find(self, key: Key) -> Item | None:
        """The object with that identity, None if it is not among the items."""
        return self._by_key.get(key)

    def of_kind(self, group: str, kind: str, namespace: str | None = None) -> Sequence[Item]:
        """All objects of a kind (in any case), of one namespace where that is given."""
        if namespace is None:
            return self._by_kind.get((group, kind.lower()), ())
        return self._by_kind_and_namespace.get((group, kind.lower(), namespace), ())

    def _make_autoscaler(self, item: Item) -> LintedAutoscaler:
        """An autoscaler with its target, without the metrics that an API server rejects."""
        item = _without_rejected(item)
        reference = item.spec.get("scaleTargetRef") or {}
        key = Key(
            group_of(reference.get("apiVersion", "")),
            reference.get("kind", "").lower(),
            item.namespace,
            reference.get("name", ""),
        )
        return LintedAutoscaler(item, reference, key, self.find(key), tuple(_metrics(item.spec.get("metrics") or ())))


def _metrics(written_metrics: Iterable[Object]) -> Iterable[LintedMetric]:
    """The metrics of a spec, as written; those without the source of their type are left out."""
    for index, metric in enumerate(written_metrics):
        name = _SOURCE_FIELDS.get(metric.get("type", ""), "")
        if metric.get(name):  # a cluster may serve newer types
            yield LintedMetric(metric["type"], metric[name], f"spec.metrics[{index}].{name}")


_SPEC_FIELD = re.compile(r"spec\.(\w+)(?:\[(\d+)\])?")


def _without_rejected(item: Item) -> Item:
    """The autoscaler without the parts of its spec that the API server rejects, so that rules read valid values."""
    matches = [_SPEC_FIELD.match(api_error.field) for api_error in item.api_errors]
    rejected_fields = [match.groups() for match in matches if match]  # name, and index or None
    if not rejected_fields:
        return item
    spec = dict(item.spec)
    rejected_indexes = {int(index) for name, index in rejected_fields if name == "metrics" and index is not None}
    indexed_metrics = enumerate(spec.get("metrics") or ())  # a rejected one becomes empty: the others keep their index
    spec["metrics"] = [{} if index in rejected_indexes else metric for index, metric in indexed_metrics]
    for name, index in rejected_fields:
        if index is None or name != "metrics":
            spec.pop(name, None)
    return replace(item, obj={**item.obj, "spec": spec})


def is_autoscaler(item: Item) -> bool:
    """Whether the object is a HorizontalPodAutoscaler or a PodAutoscaler, of any version."""
    return (item.kind == HPA_KIND and item.group in HPA_GROUPS) or (item.group, item.kind) == POD_AUTOSCALER
