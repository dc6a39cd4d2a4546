"""Defines a simulated workload: its pods, its load, and how its pods serve that load.

`docs/simulation.md` states the model with its sources and its limits. CPU is in millionths of a core (`_ucores`) or
thousandths (`_milli`, as in manifests), memory in bytes. `podscaler.simulation.files` and
`podscaler.simulation.evaluation` make workloads; `podscaler.simulation.world` and `podscaler.simulation.batch` simulate
them, and a new attribute is an obstacle of the batch engine (`scenario_tables`) unless both have it.
"""

from collections.abc import Mapping

import msgspec

from podscaler.simulation.model.distributions import DurationDistribution, fixed
from podscaler.simulation.model.step_series import StepSeries


class ContainerModel(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a pod.

    Attributes:
        requests_milli: requests in thousandths, by resource.
        cpu_limit_milli: the CPU limit in thousandths of a core; None: no limit.
        idle_cpu_ucores: the CPU that it uses without load, once it runs.
        idle_memory_bytes: the memory that it uses without load, once it runs.
        load_permille: its share of the pod's load, in thousandths; the shares of a pod's containers sum up to 1000.
        memory_permille: its share of the memory of the pod's load; None: `load_permille`.
    """

    name: str
    requests_milli: Mapping[str, int] = {}
    cpu_limit_milli: int | None = None
    idle_cpu_ucores: int = 0
    idle_memory_bytes: int = 0
    load_permille: int = 1000
    memory_permille: int | None = None

    @property
    def memory_share_permille(self) -> int:
        """Its share of the memory of the pod's load, in thousandths."""
        return self.load_permille if self.memory_permille is None else self.memory_permille


class PodModel(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of a workload.

    Attributes:
        containers: at least one.
        launch: from the pod's place on a node until its containers run (images, sandbox).
        startup: from then until it is ready.
        burst_ucores, burst_ms: the CPU that it uses beyond load while it starts, from when it runs.
        crashes_per_hour: the expected number of crashes of a running pod in an hour.
        restart: from a crash until the pod is ready again.
        termination_ms: how long a deleted pod still takes room on its node.
    """

    containers: tuple[ContainerModel, ...]
    launch: DurationDistribution = fixed(2_000)
    startup: DurationDistribution = fixed(5_000)
    burst_ucores: int = 0
    burst_ms: int = 0
    crashes_per_hour: float = 0
    restart: DurationDistribution = fixed(10_000)
    termination_ms: int = 0

    @property
    def request_milli(self) -> Mapping[str, int]:
        """The requests of the whole pod, by resource."""
        request_sums: dict[str, int] = {}
        for container in self.containers:
            for resource, amount in container.requests_milli.items():
                request_sums[resource] = request_sums.get(resource, 0) + amount
        return request_sums

    @property
    def is_deterministic(self) -> bool:
        """Whether all pods behave alike: fixed durations, no crashes."""
        return self.launch.is_fixed and self.startup.is_fixed and not self.crashes_per_hour


class RequestLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that the ready pods share evenly (processor sharing in each pod behind a load balancer).

    Attributes:
        rate: arrivals in thousandths of a request per second.
        cpu_per_request_us: the CPU time that one request needs, in microseconds.
        timeout_ms: how long a request waits for CPU before its client gives up; None: it waits for ever, as in a queue.
        latency_ms: what a request takes beyond CPU (network, other services).
        memory_per_request_bytes: held while a request is served.
        rate_metric: the name of the Pods metric with each pod's requests per second; empty if there is none.
        queue_metric: the name of the External metric with the number of requests that wait; empty if there is none.
    """

    rate: StepSeries
    cpu_per_request_us: int
    timeout_ms: int | None = 10_000
    latency_ms: int = 0
    memory_per_request_bytes: int = 0
    rate_metric: str = ""
    queue_metric: str = ""


class ResourceLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A total demand for one resource, which the ready pods share evenly.

    Attributes:
        resource: `cpu` or `memory`.
        total: in millionths of a core, or in bytes.
    """

    resource: str
    total: StepSeries


class RolloutModel(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload replaces its pods when its template changes.

    Attributes:
        max_surge, max_unavailable: pods above and below the wanted count, as a number or a percentage (`25%`).
    """

    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class WorkloadModel(msgspec.Struct, frozen=True, kw_only=True):
    """A workload.

    Attributes:
        key: `namespace/name`.
        kind: of the object, such as `Deployment`.
        replicas: at the start; these pods are ready then, and have been for a long time.
        pod: its pods.
        requests: the requests that it serves; None: none.
        demands: other demands, at most one for each resource.
        is_ordered: whether pods are made one after another, each when the one before is ready, and removed from the
            last one on, as a StatefulSet with the pod management policy OrderedReady does.
    """

    key: str
    kind: str = "Deployment"
    replicas: int = 1
    pod: PodModel
    requests: RequestLoad | None = None
    demands: tuple[ResourceLoad, ...] = ()
    rollout: RolloutModel = RolloutModel()
    is_ordered: bool = False

    def has_load(self, resource: str) -> bool:
        """Whether it is known how much of a resource (`cpu` or `memory`) its pods use."""
        if any(demand.resource == resource for demand in self.demands):
            return True
        if resource == "memory":
            has_idle = any(container.idle_memory_bytes for container in self.pod.containers)
            return has_idle or (self.requests is not None and self.requests.memory_per_request_bytes > 0)
        return self.requests is not None

    @property
    def cpu_capacity_ucores(self) -> int | None:
        """The CPU that one pod has for load, in millionths of a core; None if a container with load has no limit.

        A container carries `load_permille` of the load, so the container that is full first decides. 0: idle use takes
        all of a limit, or no container has load.
        """
        capacities_ucores = []
        for container in self.pod.containers:
            if not container.load_permille:
                continue
            if container.cpu_limit_milli is None:
                return None
            load_ucores = max(container.cpu_limit_milli * 1000 - container.idle_cpu_ucores, 0)
            capacities_ucores.append(load_ucores * 1000 // container.load_permille)
        return min(capacities_ucores, default=0)
