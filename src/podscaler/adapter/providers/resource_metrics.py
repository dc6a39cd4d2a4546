"""Provides the usage of pods and nodes from Prometheus, for metrics.k8s.io, as metrics-server does from kubelets.

`adapter.server.resource_api` calls it for each request. `resource` is pods or nodes, `measured` is cpu or memory; a
third measured resource needs a rule in `ResourceRules`, a format, and its place in `_usages`.

Source: prometheus-adapter v0.12.0: a pod without cpu or without memory is left out, a container without one of the two
has 0 of it; NaN and negative values are 0. Differs: containers are in the order of their names; a pod or node with a
value that is no quantity (infinite, or from 2^63 on) is left out, as 0 of it would scale down.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from podscaler.adapter.cluster.object_names import LabeledObject, ObjectNames
from podscaler.adapter.cluster.rest_mapper import RESTMapper, ServedResources
from podscaler.adapter.config.rules import GroupResource, ResourceRule, ResourceRules
from podscaler.adapter.naming.metric_names import RuleError
from podscaler.adapter.naming.queries import QueryTarget, QueryTemplate
from podscaler.adapter.naming.resource_labels import NAMESPACES, NODES, PODS, ResourceLabels
from podscaler.adapter.prometheus.responses import PrometheusError, PromSample
from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.object_values import ObjectValues
from podscaler.api.machinery import selectors
from podscaler.api.machinery.quantity import Format, Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import NANOSECONDS

log = logging.getLogger(__name__)

CPU, MEMORY = "cpu", "memory"
_FORMATS = {CPU: Format.DECIMAL_SI, MEMORY: Format.BINARY_SI}
Samples = Mapping[str, Sequence[PromSample]]
"""The samples of each object by its name: of a node one, of a pod one for each container."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a pod or node.

    Attributes:
        described: the pod or node.
        at_ns: when the earliest of its samples was measured, in nanoseconds since the epoch.
        window_ns: the span over which CPU usage is measured.
        by_container: usage by container and resource (`cpu`, `memory`); a node has one entry, with an empty name.
    """

    described: LabeledObject
    at_ns: int
    window_ns: int
    by_container: Mapping[str, Mapping[str, Quantity]]


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    """A rule of cpu or memory, ready for use."""

    labels: ResourceLabels
    of_containers: QueryTemplate
    of_nodes: QueryTemplate
    container_label: str


class UsageProvider(Protocol):
    """A source of the usage of pods and nodes, which the server of metrics.k8s.io reads."""

    async def of_pods(self, namespace: str, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of pods, of all namespaces where none is given, in order. Raises StatusError."""
        ...

    async def of_nodes(self, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of nodes, in order. Raises StatusError."""
        ...

    async def find_object(self, resource: GroupResource, namespace: str, name: str) -> LabeledObject | None:
        """The pod or node of that name; None if there is none. Raises StatusError."""
        ...

    async def of_object(self, resource: GroupResource, described: LabeledObject) -> Usage | None:
        """The usage of a pod or node; None if it is not known. Raises StatusError."""
        ...


class ResourceMetrics:
    """Computes the usage of pods and nodes by the rules `resourceRules`; a UsageProvider.

    Args:
        rules: the rules of the configuration.
        mapper: maps names of resources.
        objects: finds pods and nodes.
        values: queries the values of objects, which may have several samples.
    """

    def __init__(self, rules: ResourceRules, mapper: RESTMapper, objects: ObjectNames, values: ObjectValues) -> None:
        self._rules = rules
        self._mapper = mapper
        self._objects = objects
        self._values = values
        self._compiled_for: ServedResources | None = None
        self._compiled: dict[str, _CompiledRule] = {}

    async def of_pods(self, namespace: str, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of running pods, of all namespaces where none is given, in order. Raises StatusError."""
        pods = [pod for pod in await self._select(PODS, namespace, selector) if pod.is_running]
        pods_by_namespace: dict[str, list[LabeledObject]] = {}
        for pod in pods:
            pods_by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        usages_by_namespace = await asyncio.gather(
            *(self._usages(PODS, pod_namespace, own_pods) for pod_namespace, own_pods in pods_by_namespace.items())
        )
        return [usage for usages in usages_by_namespace for usage in usages]

    async def of_nodes(self, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of nodes, in order. Raises StatusError."""
        return await self._usages(NODES, "", list(await self._select(NODES, "", selector)))

    async def find_object(self, resource: GroupResource, namespace: str, name: str) -> LabeledObject | None:
        """The pod or node of that name; None if there is none. Raises StatusError."""
        objects = await self._select(resource, namespace, selectors.EVERYTHING)
        return next((labeled for labeled in objects if labeled.metadata.name == name), None)

    async def of_object(self, resource: GroupResource, described: LabeledObject) -> Usage | None:
        """The usage of a pod or node; None if it is not known. Raises StatusError."""
        usages = await self._usages(resource, described.metadata.namespace, [described])
        return usages[0] if usages else None

    async def _select(self, resource: GroupResource, namespace: str, selector: Selector) -> Sequence[LabeledObject]:
        """The pods or nodes that a selector matches, in order. Raises StatusError."""
        mapped_resource = self._mapper.mapping.find(resource)
        if mapped_resource is None:
            raise protocols.internal_error(f"failed listing {resource}")
        return await self._objects.objects(mapped_resource, namespace, selector)

    async def _usages(self, resource: GroupResource, namespace: str, objects: Sequence[LabeledObject]) -> list[Usage]:
        """The usage of objects of a namespace; none where Prometheus cannot be read."""
        if not objects:
            return []
        names = [labeled.metadata.name for labeled in objects]
        try:
            compiled = self._rules_for(self._mapper.mapping)
            cpu, memory = await asyncio.gather(
                *(self._samples(compiled[measured], resource, namespace, names) for measured in (CPU, MEMORY))
            )
        except (PrometheusError, RuleError) as error:
            log.error("the usage of %s in namespace %r is not known: %s", resource, namespace, error)
            return []
        measured_objects = [
            labeled for labeled in objects if labeled.metadata.name in cpu and labeled.metadata.name in memory
        ]
        samples = {CPU: cpu, MEMORY: memory}
        usages = (self._usage(compiled, resource, described, samples) for described in measured_objects)
        return [usage for usage in usages if usage is not None]

    def _rules_for(self, served_resources: ServedResources) -> Mapping[str, _CompiledRule]:
        """The rules, compiled for these resources. Raises RuleError."""
        if self._compiled_for is not served_resources:  # each discovery makes another object
            rules_by_name = {CPU: self._rules.cpu, MEMORY: self._rules.memory}
            self._compiled = {name: _compile(rule, served_resources) for name, rule in rules_by_name.items()}
            self._compiled_for = served_resources
        return self._compiled

    async def _samples(
        self, compiled: _CompiledRule, resource: GroupResource, namespace: str, names: Sequence[str]
    ) -> Samples:
        """The samples of objects. Raises PrometheusError, RuleError."""
        is_pod = resource == PODS
        target = QueryTarget(
            series="",  # the templates of `resourceRules` name their series
            resource_label=compiled.labels.get_label(resource),
            namespace_label=compiled.labels.get_label(NAMESPACES) if is_pod else "",
            selector=selectors.EVERYTHING,
            extra_group_by=(compiled.container_label,) if is_pod else (),
        )
        template = compiled.of_containers if is_pod else compiled.of_nodes
        return await self._values.samples(template, target, namespace, names)

    def _usage(
        self,
        compiled: Mapping[str, _CompiledRule],
        resource: GroupResource,
        described: LabeledObject,
        samples_by_resource: Mapping[str, Samples],
    ) -> Usage | None:
        """The usage of a pod or node; None if a value is no quantity."""
        by_container: dict[str, dict[str, Quantity]] = {}
        samples = {measured: samples_by_resource[measured][described.metadata.name] for measured in (CPU, MEMORY)}
        is_pod = resource == PODS
        for measured, own_samples in samples.items():
            container_label = compiled[measured].container_label
            for sample in own_samples if is_pod else own_samples[:1]:  # a node has one value
                container = sample.labels.get(container_label, "") if is_pod else ""
                quantity = _find_quantity(sample, _FORMATS[measured])
                if quantity is None:
                    log.warning(
                        "%s %s is left out: its %s is %s", resource, described.metadata.name, measured, sample.value
                    )
                    return None
                by_container.setdefault(container, {})[measured] = quantity
        for container_usage in by_container.values():
            for measured in (CPU, MEMORY):
                container_usage.setdefault(measured, Quantity(0, 0, Format.BINARY_SI))  # `0` in any format
        at_s = min(sample.at_s for own_samples in samples.values() for sample in own_samples)
        ordered = {container: by_container[container] for container in sorted(by_container)}
        return Usage(described, round(at_s * NANOSECONDS), self._rules.window_ns, ordered)


def _find_quantity(sample: PromSample, form: Format) -> Quantity | None:
    """The amount of a sample, 0 for NaN and negative values; None if it is no quantity."""
    amount = sample.value if sample.value > 0 else 0.0
    return protocols.find_quantity(amount, form)


def _compile(rule: ResourceRule, served_resources: ServedResources) -> _CompiledRule:
    """The rule, ready for use. Raises RuleError with its place."""
    try:
        labels = ResourceLabels(rule.resources, served_resources)
        templates = QueryTemplate(rule.container_query), QueryTemplate(rule.node_query)
    except RuleError as error:
        raise RuleError(f"{rule.place}: {error}") from error
    return _CompiledRule(labels, *templates, rule.container_label)
