"""What a pod requests of a resource, as utilization is measured against it.

Called by `podscaler.core.calculation.per_pod`.

Source: docs/spec/decision.md 6.2 (Requests).
"""

from podscaler.api.machinery import numbers
from podscaler.core.calculation.situation import MetricError
from podscaler.core.model.model import Pod, PodLevelRequests
from podscaler.core.model.settings import Settings


def request_milli(pod: Pod, resource: str, container: str, settings: Settings) -> int:
    """The request of a pod, or of one container of it, in thousandths. Raises MetricError where there is none."""
    if container:
        return _container_request(pod, resource, container)
    if pod.pod_level is not None and settings.gates.pod_level_resources:
        return _pod_level_request(pod, pod.pod_level, resource, settings)
    total = pod.requests_milli.get(resource)
    return _sum_of_containers(pod, resource) if total is None else total


def _container_request(pod: Pod, resource: str, name: str) -> int:
    for container in pod.containers:
        if container.name == name:
            request = container.requests_milli.get(resource)
            if request is None:
                raise _missing(resource, name, pod)
            return request
    raise MetricError(f"container {name} not found in Pod {pod.name}")


def _pod_level_request(pod: Pod, stated: PodLevelRequests, resource: str, settings: Settings) -> int:
    adds_overhead = settings.emulation.adds_overhead
    requests = stated.with_overhead_milli if adds_overhead else stated.without_overhead_milli
    if resource not in requests:
        raise MetricError(f"missing pod-level request for {resource} in Pod {pod.name}")
    return requests[resource]


def _sum_of_containers(pod: Pod, resource: str) -> int:
    total = 0
    for container in pod.containers:
        request = container.requests_milli.get(resource)
        if request is None:
            raise _missing(resource, container.name, pod)
        total += request
    return numbers.wrap64(total)


def _missing(resource: str, container: str, pod: Pod) -> MetricError:
    return MetricError(f"missing request for {resource} in container {container} of Pod {pod.name}")
