"""Reads workloads for lint rules: labels of their pods, selector, containers with requests and limits.

Called by rules of `podscaler.lint.rules` and by `podscaler.cli.diagnosis.examination`. A workload is of one of the
kinds in WORKLOAD_KINDS: those of the group apps with a pod template, and ReplicationController. The functions return
None for one that the API server would reject. A further kind: in WORKLOAD_KINDS, with its selector in
`_parse_selector`.

Source: docs/spec/decision.md 6.2 (Requests): which containers count; the LimitRanger's defaults.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from podscaler.api.kinds.pods import pod_defaults, pod_limits
from podscaler.api.kinds.policy import limitrange
from podscaler.api.machinery import quantity, selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object
from podscaler.api.typed import pods
from podscaler.core.model import api_conversion
from podscaler.core.model.observation import Pod
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import Item

WORKLOAD_KINDS = frozenset(
    {
        ("apps", "deployment"),
        ("apps", "replicaset"),
        ("apps", "statefulset"),
        ("apps", "daemonset"),
        ("", "replicationcontroller"),
    }
)
"""The groups and kinds whose templates and selectors are read."""

_TEMPLATE = "spec.template.spec"


@dataclass(frozen=True, slots=True)
class MeasuredContainer:
    """A container whose usage metrics measure: a regular container, or a sidecar.

    Attributes:
        path: its path in the workload, `spec.template.spec.containers[0]`.
        value: the container with all defaults.
    """

    name: str
    path: str
    value: Object

    def amount_milli(self, field: str, resource: str) -> int | None:
        """Thousandths of a resource in `requests` or `limits` (`field`); None if the container states none."""
        amount = ((self.value.get("resources") or {}).get(field) or {}).get(resource)
        return None if amount is None else quantity.parse(str(amount)).milli_value()


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload with its pod template.

    Attributes:
        item: the workload itself.
        labels: those of the template, which its pods get.
        selector: the one by which it finds its pods.
        containers: regular ones in order, then sidecars; each with the defaults of the namespace's LimitRanges.
        pod: a pod of the template, as decisions read it.
        has_pod_resources: whether the template has pod-level requests or limits.
    """

    item: Item
    labels: dict[str, str]
    selector: Selector
    containers: tuple[MeasuredContainer, ...]
    pod: Pod
    has_pod_resources: bool


def target_of(autoscaler: LintedAutoscaler, context: LintContext) -> Workload | None:
    """The target of an autoscaler; None if it is not among the items, or cannot be read."""
    return read(autoscaler.target, context) if autoscaler.target else None


def read(item: Item, context: LintContext) -> Workload | None:
    """The workload; None if it is of another kind, has API errors, or is newer than these rules."""
    if item.api_errors or (item.group, item.kind.lower()) not in WORKLOAD_KINDS:
        return None
    try:
        return _read_template(item, _limit_ranges(item.namespace, context))
    except ValueError:  # a cluster may hold values that this version cannot read
        return None


def _read_template(item: Item, limit_ranges: Iterable[Object]) -> Workload:
    """A workload with the defaults of its template and of the namespace's LimitRanges. Raises ValueError."""
    template = semantics.copied(item.spec.get("template") or {})
    template["metadata"] = template.get("metadata") or {}
    pod_defaults.set_pod_defaults(template)
    for limit_range in limit_ranges:
        pod_limits.complete(template, limit_range)
    spec = template["spec"]
    return Workload(
        item=item,
        labels=template["metadata"].get("labels") or {},
        selector=_parse_selector(item),
        containers=tuple(_measured_containers(spec)),
        pod=api_conversion.pod(msgspec.convert(template, pods.Pod)),
        has_pod_resources=bool(spec.get("resources")),
    )


def _parse_selector(item: Item) -> Selector:
    """The selector of a workload's pods. Raises ValueError for an invalid one."""
    selector_spec = item.spec.get("selector")
    if item.kind == "ReplicationController":
        return selectors.from_labels(selector_spec or {})
    return selectors.from_label_selector(selector_spec)


def _measured_containers(spec: Object) -> Iterator[MeasuredContainer]:
    """The regular containers of a pod's spec, then its sidecars (restartable init containers)."""
    for index, container in enumerate(spec.get("containers") or ()):
        yield MeasuredContainer(container.get("name", ""), f"{_TEMPLATE}.containers[{index}]", container)
    for index, container in enumerate(spec.get("initContainers") or ()):
        if container.get("restartPolicy") == "Always":
            yield MeasuredContainer(container.get("name", ""), f"{_TEMPLATE}.initContainers[{index}]", container)


def _limit_ranges(namespace: str, context: LintContext) -> Iterator[Object]:
    """The LimitRanges of a namespace, as the API server would store them."""
    for item in context.of_kind("", "LimitRange", namespace):
        if not item.api_errors:
            stored = {"spec": semantics.copied(item.spec)}
            limitrange.set_defaults(stored)
            yield stored
