"""Computes how a workload's ready pods serve its load: a fluid model of processor sharing.

Between two events the demand D and the number n of ready pods are constant. Every pod has the CPU capacity C for
load, and the load balancer is perfect, so the pods are equal:

    work = D * dt + backlog        arrives or waits
    served = min(work, n * C * dt) each pod serves served // n
    backlog = work - served        requests wait, up to their timeout; the rest is lost

Work is CPU in millionths of a core times milliseconds, as whole numbers. A demand for a resource (without requests)
does not wait: what exceeds the capacity is lost, as a CPU limit throttles.

The response time is that of M/G/1 processor sharing, S / (1 - rho), where S is the service time of a request and rho
the utilization; with c cores for each pod it is that of M/M/c. Processor sharing depends on the mean of the service
time alone, not on its distribution. While requests wait, the time to serve the backlog is added.

Called by `podscaler.simulation.world.workload` at each event of a workload. `podscaler.simulation.batch.world_kernel`
computes the same in machine code, and `podscaler.simulation.evaluation.demand` inverts `response_time_ms`: change them
together.

Source: L. Kleinrock, Queueing Systems, volume 2 (1976), 4.4 (processor sharing); volume 1 (1975), 3.5 (M/M/m).
"""

import math

from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import RequestLoad, WorkloadModel

_CORE_UCORES = 1_000_000
_ROUNDING_FACTOR = 1 + 1e-9
_HIGHEST_UTILIZATION = 0.99
_UNLIMITED_WORK = 1 << 62
"""More work than any scenario has; it fits into the 64 bits of `podscaler.simulation.batch`, too."""


def slo_bound_ms(slo_ms: float | None) -> float | None:
    """The response time above which an SLO is missed; None if there is no SLO.

    A load that meets the SLO exactly does not miss it by the rounding of the response time.
    """
    return None if slo_ms is None else slo_ms * _ROUNDING_FACTOR


class ServedLoad:
    """The load of one workload.

    Attributes:
        rate_milli, demand_ucores, demand_bytes: the load now.
        backlog: the work of requests that wait.
        work_of_each: the work that a pod would have served that was ready since the start.
        arrived, lost, served: work since the start of the simulation.

    Raises ValueError if the model states two demands for one resource, of which requests are one for CPU.
    """

    def __init__(self, model: WorkloadModel, start_ms: int) -> None:
        if model.requests is not None and any(load.resource == "cpu" for load in model.demands):
            raise ValueError(f"{model.key}: requests are a demand for CPU already; state one of both")
        self.requests = model.requests
        self._cpu = _find_total(model, "cpu")
        self._memory = _find_total(model, "memory")
        self._capacity_ucores = model.cpu_capacity_ucores
        self._ready = 0
        self._at_ms = start_ms
        self.rate_milli = self.demand_ucores = self.demand_bytes = 0
        self.backlog = 0
        self.work_of_each = 0
        self.arrived = 0
        self.lost = 0
        self.served = 0
        self.set_load(start_ms)  # for the load at the start; the workload adds the events of later steps

    def set_load(self, at_ms: int) -> int | None:
        """Serve until that instant, and take the load from then on.

        Returns the instant of the next step of the load, None if there is none.
        """
        self.advance(at_ms)
        load_series = [one_series for one_series in (self._cpu, self._memory) if one_series is not None]
        if self.requests is not None:
            self.rate_milli = self.requests.rate.value_at(at_ms)
            self.demand_ucores = request_demand_ucores(self.requests, self.rate_milli)
            load_series.append(self.requests.rate)
        elif self._cpu is not None:
            self.demand_ucores = self._cpu.value_at(at_ms)
        if self._memory is not None:
            self.demand_bytes = self._memory.value_at(at_ms)
        next_steps_ms = [one_series.next_step_after(at_ms) for one_series in load_series]
        return min([step_ms for step_ms in next_steps_ms if step_ms is not None], default=None)

    def set_ready(self, ready: int, at_ms: int) -> None:
        """Serve until that instant, and with `ready` pods from then on."""
        self.advance(at_ms)
        self._ready = ready

    def advance(self, at_ms: int) -> None:
        """Serve the load with the ready pods until that instant, and move the sums there."""
        elapsed_ms = at_ms - self._at_ms
        if not elapsed_ms:
            return
        self._at_ms = at_ms
        ready_pods = self._ready
        arriving_work = self.demand_ucores * elapsed_ms
        waiting_work = arriving_work + self.backlog
        capacity = self._capacity_ucores
        served_work = 0
        if ready_pods:
            served_work = waiting_work if capacity is None else min(waiting_work, ready_pods * capacity * elapsed_ms)
            self.work_of_each += served_work // ready_pods
        self.arrived += arriving_work
        self.served += served_work
        unserved_work = waiting_work - served_work
        self.backlog = min(unserved_work, self._longest_backlog())
        self.lost += unserved_work - self.backlog

    def lose_share(self, ready: int) -> None:
        """Lose the requests that wait in one of `ready` pods, which crashes; a queue (no timeout) keeps them."""
        work_of_pod = self.backlog // ready if ready else 0
        if self.requests is not None and self.requests.timeout_ms is not None:
            self.backlog -= work_of_pod
            self.lost += work_of_pod

    def forget_past(self) -> None:
        """Forget backlog and sums, at the end of the time before the start."""
        self.backlog = self.arrived = self.lost = self.served = 0

    @property
    def waiting_milli(self) -> int:
        """The number of requests that wait, in thousandths: ucores * ms are thousandths of a us of CPU time."""
        return self.backlog // self.requests.cpu_per_request_us if self.requests is not None else 0

    @property
    def bytes_of_each(self) -> int:
        """The memory that each ready pod uses for its load."""
        if not self._ready:
            return 0
        waiting_bytes = 0
        if self.requests is not None and self.requests.memory_per_request_bytes:
            waiting_bytes = self.waiting_milli * self.requests.memory_per_request_bytes // 1000
        return (self.demand_bytes + waiting_bytes) // self._ready

    def latency_ms(self) -> float | None:
        """The mean response time of a request that arrives now; None: without requests, or while no pod is ready."""
        if self.requests is None or not self._ready:
            return None
        capacity = self._capacity_ucores
        if capacity is None:
            return self.requests.latency_ms + self.requests.cpu_per_request_us / 1000
        return response_time_ms(self.requests, capacity, self.demand_ucores / self._ready, self.backlog / self._ready)

    def _longest_backlog(self) -> int:
        """The most work that can wait until it is given up; nothing waits before the start of the simulation."""
        if self.requests is None or self._at_ms <= 0:
            return 0
        timeout_ms, capacity = self.requests.timeout_ms, self._capacity_ucores
        if timeout_ms is None:
            return _UNLIMITED_WORK
        return timeout_ms * self._ready * (capacity or 0)  # without a limit (None) ready pods leave no work


def _find_total(model: WorkloadModel, resource: str) -> StepSeries | None:
    """The demand for a resource; None if there is none. Raises ValueError if there are several."""
    totals = [load.total for load in model.demands if load.resource == resource]
    if len(totals) > 1:
        raise ValueError(f"{model.key}: there are {len(totals)} demands for {resource}; one is possible")
    return totals[0] if totals else None


def request_demand_ucores(requests: RequestLoad, rate_milli: int) -> int:
    """The demand for CPU of a rate in thousandths of a request per second."""
    return rate_milli * requests.cpu_per_request_us // 1000  # 1/1000 of 1/s times us: billionths of a core


def server_cores(capacity_ucores: int) -> int:
    """The servers of a pod's queue: its whole cores, at least 1."""
    return max(capacity_ucores // _CORE_UCORES, 1)


def service_ms(requests: RequestLoad, capacity_ucores: int) -> float:
    """The time that a request which is alone in a pod takes on one server.

    A pod of 2.5 cores has 2 servers of 1.25 cores; the one server of a pod of half a core takes twice the CPU time.
    """
    capacity_ucores = max(capacity_ucores, 1)
    return requests.cpu_per_request_us / 1000 * _CORE_UCORES * server_cores(capacity_ucores) / capacity_ucores


def waiting_ms(alone_ms: float, servers: int, utilization: float) -> float:
    """The mean wait of a request in M/M/c, for the mean service time `alone_ms` and a utilization below 1."""
    return alone_ms * erlang_c(servers, utilization * servers) / (servers * (1 - utilization))


def response_time_ms(requests: RequestLoad, capacity_ucores: int, demand_ucores: float, backlog: float) -> float:
    """The mean response time in a pod with that capacity, demand and backlog (ucores * ms).

    Differs: above the utilization of 0.99 the stationary formula is used at 0.99, since a queue does not reach its
    stationary length within the seconds that an overload lasts; the backlog of the fluid model has the rest.
    """
    capacity_ucores = max(capacity_ucores, 1)
    alone_ms = service_ms(requests, capacity_ucores)
    utilization = min(demand_ucores / capacity_ucores, _HIGHEST_UTILIZATION)
    queue_ms = waiting_ms(alone_ms, server_cores(capacity_ucores), utilization)
    return requests.latency_ms + alone_ms + queue_ms + backlog / capacity_ucores


def erlang_c(servers: int, offered: float) -> float:
    """The probability that an arrival waits in M/M/c, for an offered load (in servers) below `servers`.

    Source: A. K. Erlang's delay formula, by the recursion of his loss formula.
    """
    if offered <= 0:
        return 0.0
    loss = 1.0
    for server in range(1, servers + 1):
        loss = offered * loss / (server + offered * loss)
    utilization = offered / servers
    return loss / (1 - utilization * (1 - loss)) if math.isfinite(loss) else 1.0  # NaN for an infinite load
