"""Converts pods and scales of the API into the facts that a decision uses: quantities and times become numbers.

Example: a container that requests `cpu: 250m` becomes ContainerRequests(requests_milli={"cpu": 250}). Called by the
controller's caches, the replay and the lint rules, once for each object. A new fact of pods: a field of
`podscaler.core.model.observation.Pod`, filled in by `pod`. `podscaler.core.calculation.samples` converts the lists of
metrics APIs.

Source: docs/spec/decision.md 6.1 (Grouping pods), 6.2 (Requests).
"""

from collections.abc import Iterable, Mapping

from podscaler.api.machinery import instants, meta, numbers, quantity
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.typed import autoscaling, pods
from podscaler.core.model import emulation
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.observation import ContainerRequests, Failure, Pod, PodLevelRequests, Scale

Requests = dict[str, Quantity]
"""Exact amounts by resource name."""

_NO_REQUESTS: Mapping[str, str] = {}


def pod(api_pod: pods.Pod, version: Emulation = emulation.V1_37) -> Pod:
    """The facts of one pod. Raises ValueError if a quantity or a time of it cannot be read."""
    readiness = next((condition for condition in api_pod.status.conditions or () if condition.type == "Ready"), None)
    containers = tuple(_container_requests(container, version) for container in _counted_containers(api_pod.spec))
    return Pod(
        name=api_pod.metadata.name,
        labels=api_pod.metadata.labels or {},
        phase=api_pod.status.phase,
        is_deleting=api_pod.metadata.deletion_timestamp is not None,
        started_at=instants.parse(api_pod.status.start_time) if api_pod.status.start_time else None,
        ready=readiness.status if readiness else None,
        ready_changed_at=instants.parse_optional(readiness.last_transition_time) if readiness else instants.ZERO,
        containers=containers,
        requests_milli=_common_sums(containers),
        pod_level=_pod_level_requests(api_pod.spec, version),
    )


def scale(response: autoscaling.Scale | meta.Status) -> Scale | Failure:
    """The facts of a scale, or of the Status with which reading it failed."""
    if isinstance(response, meta.Status):
        return failure(response)
    return Scale(response.spec.replicas, response.status.replicas, response.status.selector)


def failure(status: meta.Status) -> Failure:
    """The facts of a failed request."""
    return Failure(status.message, status.reason, status.code)


def _is_restartable(container: pods.Container) -> bool:
    return container.restart_policy == "Always"


def _counted_containers(spec: pods.PodSpec) -> Iterable[pods.Container]:
    """The containers whose requests count: those that run beside one another."""
    yield from spec.containers or ()
    yield from filter(_is_restartable, spec.init_containers or ())


def _requests_of(container: pods.Container) -> Mapping[str, str]:
    requests = container.resources.requests if container.resources else None
    return requests or _NO_REQUESTS


def _container_requests(container: pods.Container, version: Emulation) -> ContainerRequests:
    """The requests of a container in thousandths by resource, as this version of Kubernetes rounds them.

    Raises ValueError.
    """
    milli = version.parse_milli
    return ContainerRequests(
        container.name, {name: milli(quantity_text) for name, quantity_text in _requests_of(container).items()}
    )


def _common_sums(containers: tuple[ContainerRequests, ...]) -> Mapping[str, int]:
    """For each resource that every container requests, the sum in thousandths."""
    if len(containers) == 1:
        return containers[0].requests_milli
    if not containers:
        return {}
    requests_milli = [container.requests_milli for container in containers]
    common_names = [name for name in requests_milli[0] if all(name in requests for requests in requests_milli)]
    return {name: numbers.wrap64(sum([requests[name] for requests in requests_milli])) for name in common_names}


def _is_pod_level_resource(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def _pod_level_requests(spec: pods.PodSpec, version: Emulation) -> PodLevelRequests | None:
    """The requests of a pod with `spec.resources.requests`, in thousandths; None if it has none that count."""
    requests = spec.resources.requests if spec.resources else None
    requests_of_level = {
        name: quantity.parse(quantity_text)
        for name, quantity_text in (requests or {}).items()
        if _is_pod_level_resource(name)
    }
    if not requests_of_level:
        return None
    total = _aggregate_requests(spec) | requests_of_level
    milli = version.milli_of_quantity
    without_overhead = {name: milli(amount) for name, amount in total.items()}
    if not spec.overhead:
        return PodLevelRequests(without_overhead, without_overhead)
    _add_amounts(total, _parsed_quantities(spec.overhead))
    return PodLevelRequests({name: milli(amount) for name, amount in total.items()}, without_overhead)


def _aggregate_requests(spec: pods.PodSpec) -> Requests:
    """The highest sum of the requests of containers that run at the same time, as the scheduler counts a pod.

    An ordinary init container runs together with the restartable ones (sidecars) before it.
    """
    running: Requests = {}
    for container in spec.containers or ():
        _add_amounts(running, _parsed_quantities(_requests_of(container)))
    sidecars: Requests = {}
    peak: Requests = {}
    for container in spec.init_containers or ():
        requests = _parsed_quantities(_requests_of(container))
        if _is_restartable(container):
            _add_amounts(running, requests)
            _add_amounts(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            _add_amounts(requests, sidecars)
            _raise_to(peak, requests)
    _raise_to(running, peak)
    return running


def _parsed_quantities(quantity_texts: Mapping[str, str]) -> Requests:
    """The amounts of quantities as manifests write them, by resource name. Raises ValueError."""
    return {name: quantity.parse(quantity_text) for name, quantity_text in quantity_texts.items()}


def _add_amounts(total: Requests, added: Requests) -> None:
    """Add amounts to `total`, in place."""
    for name, amount in added.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Requests, minimum: Requests) -> None:
    """Raise each amount of `total` to at least that of `minimum`, in place."""
    for name, amount in minimum.items():
        if name not in total or total[name] < amount:
            total[name] = amount
