"""Groups the pods of the target for a metric (counted, ignored, unready, missing), and finds their requests.

Called by the calculators. The first rule that matches a pod decides its group: a pod being deleted is ignored, one
without a sample is missing, and one that is still starting is unready for a CPU metric. A new rule: a member of
`podscaler.core.model.trace.PodRule` with its group, and a line in `_general_rule` or `_cpu_rule`.

Source: docs/spec/decision.md 6.1 (Grouping pods), 6.2 (Requests).
"""

from collections.abc import Mapping, Sequence

from podscaler.api.machinery import numbers
from podscaler.core.calculation.calculation_types import MetricError, Situation
from podscaler.core.model import pod_list
from podscaler.core.model.observation import Fact, Pod, PodLevelRequests, Sample
from podscaler.core.model.pod_list import WITHOUT_USAGE, PodList
from podscaler.core.model.settings import Settings
from podscaler.core.model.trace import Group, PodRule, Unlisted


class Grouped(Fact, frozen=True, gc=False):
    """The pods of the target by groups.

    Attributes:
        rules: for each pod the rule that applied, in list order.
        values_milli: for each pod its sample; None if it has none.
        counted, unready, missing: the indexes of the pods in these groups; the others are ignored.
        unlisted: samples of pods that the target does not have.
    """

    rules: list[PodRule]
    values_milli: list[int | None]
    counted: list[int]
    unready: list[int]
    missing: list[int]
    unlisted: tuple[Unlisted, ...]


def grouped(samples: Mapping[str, Sample], resource: str, situation: Situation) -> Grouped:
    """The groups of the situation's pods for samples of `resource` (empty for a custom metric)."""
    pods = pod_list.of(situation.pods)
    pod_samples = list(map(samples.get, pods.names))
    rules = _pod_rules(pods, pod_samples, resource, situation)
    values_milli = [None if sample is None else sample.value_milli for sample in pod_samples]
    sampled_pods = len(values_milli) - values_milli.count(None)
    unlisted = _unlisted(samples, situation) if len(samples) > sampled_pods else ()
    if rules.count(PodRule.HAS_SAMPLE) == len(rules):  # mostly so: no pass over the pods for each group then
        return Grouped(rules, values_milli, list(range(len(rules))), [], [], unlisted)
    counted, unready, missing = [
        [index for index, rule in enumerate(rules) if rule.group is group]
        for group in (Group.COUNTED, Group.UNREADY, Group.MISSING)
    ]
    return Grouped(rules, values_milli, counted, unready, missing, unlisted)


def _pod_rules(
    pods: PodList, pod_samples: Sequence[Sample | None], resource: str, situation: Situation
) -> list[PodRule]:
    """The rule for each pod, given its sample.

    Where the latest started of the pods is ready and past the initialization period, only the samples matter.
    """
    is_cpu, latest_start = resource == "cpu", pods.latest_start
    starting_ns = situation.settings.cpu_initialization_period_ns if is_cpu else 0
    if latest_start is not None and latest_start + starting_ns <= situation.now_ns:
        missing, counted = PodRule.NO_SAMPLE, PodRule.HAS_SAMPLE
        return [missing if sample is None else counted for sample in pod_samples]
    find_rule = _cpu_rule if is_cpu else _general_rule
    return [find_rule(pod, sample, situation) for pod, sample in zip(pods, pod_samples, strict=True)]


def _unlisted(samples: Mapping[str, Sample], situation: Situation) -> tuple[Unlisted, ...]:
    pod_names = {pod.name for pod in situation.pods}
    return tuple(Unlisted(name, sample.value_milli) for name, sample in samples.items() if name not in pod_names)


def _general_rule(pod: Pod, sample: Sample | None, situation: Situation) -> PodRule:
    """The rule of a pod for a metric that is not CPU; `sample` is None if it has none."""
    del situation
    if pod.is_deleting:
        return PodRule.DELETING
    if pod.phase == "Failed":
        return PodRule.FAILED
    if pod.phase == "Pending":
        return PodRule.PENDING
    return PodRule.NO_SAMPLE if sample is None else PodRule.HAS_SAMPLE


def _cpu_rule(pod: Pod, sample: Sample | None, situation: Situation) -> PodRule:
    """As `_general_rule`, but samples of a starting pod do not count (`groupPods`): its CPU is no measure of load."""
    if sample is None or pod.is_deleting or pod.phase in WITHOUT_USAGE:
        return _general_rule(pod, sample, situation)
    if pod.ready is None:
        return PodRule.NO_READY_CONDITION
    if pod.started_at is None:
        return PodRule.NOT_STARTED
    settings = situation.settings
    if pod.started_at + settings.cpu_initialization_period_ns > situation.now_ns:
        if pod.ready == "False":
            return PodRule.UNREADY_WHILE_STARTING
        if sample.taken_at < pod.ready_changed_at + sample.window_ns:
            return PodRule.SAMPLED_BEFORE_READY
    elif pod.ready == "False" and pod.started_at + settings.initial_readiness_delay_ns > pod.ready_changed_at:
        return PodRule.NEVER_READY
    return PodRule.HAS_SAMPLE


def count_ready(situation: Situation) -> int:
    """The number of the target's pods that are running and ready."""
    return sum(pod.phase == "Running" and pod.ready == "True" for pod in situation.pods)


def requests_milli(resource: str, container: str, situation: Situation) -> list[int]:
    """The request of each pod of the target (see `request_milli`). Raises MetricError."""
    pods = pod_list.of(situation.pods)
    cached_requests = None if container else pods.requests_milli(resource)
    if cached_requests is not None:
        return cached_requests
    return [request_milli(pod, resource, container, situation.settings) for pod in pods]


def request_milli(pod: Pod, resource: str, container: str, settings: Settings) -> int:
    """The request of a pod, or of one container of it, in thousandths. Raises MetricError if there is none."""
    if container:
        return _container_request(pod, resource, container)
    if pod.pod_level is not None and settings.gates.pod_level_resources:
        return _pod_level_request(pod, pod.pod_level, resource, settings)
    total = pod.requests_milli.get(resource)
    return _sum_of_containers(pod, resource) if total is None else total


def _container_request(pod: Pod, resource: str, name: str) -> int:
    """The request of one container in thousandths. Raises MetricError if it has none, or does not exist."""
    for container in pod.containers:
        if container.name == name:
            request = container.requests_milli.get(resource)
            if request is None:
                raise _no_request(resource, name, pod)
            return request
    raise MetricError(f"container {name} not found in Pod {pod.name}")


def _pod_level_request(pod: Pod, pod_level: PodLevelRequests, resource: str, settings: Settings) -> int:
    """The request of the pod as a whole in thousandths. Raises MetricError if it has none of the resource."""
    adds_overhead = settings.emulation.adds_overhead
    requests = pod_level.with_overhead_milli if adds_overhead else pod_level.without_overhead_milli
    if resource not in requests:
        raise MetricError(f"missing pod-level request for {resource} in Pod {pod.name}")
    return requests[resource]


def _sum_of_containers(pod: Pod, resource: str) -> int:
    """The sum of the containers' requests in thousandths. Raises MetricError if one of them has none."""
    total = 0
    for container in pod.containers:
        request = container.requests_milli.get(resource)
        if request is None:
            raise _no_request(resource, container.name, pod)
        total += request
    return numbers.wrap64(total)


def _no_request(resource: str, container: str, pod: Pod) -> MetricError:
    return MetricError(f"missing request for {resource} in container {container} of Pod {pod.name}")
