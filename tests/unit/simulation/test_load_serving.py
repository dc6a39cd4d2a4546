"""The fluid model of a workload's load: what is served, waits and is lost, and the response time."""

import pytest
import simulated
from hypothesis import given
from hypothesis import strategies as st

from podscaler.simulation.model.step_series import constant
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, WorkloadModel
from podscaler.simulation.world.load_serving import ServedLoad, erlang_c

CORE = simulated.CORE


def requests(rate_per_s: float = 10, cpu_ms: float = 100, **more) -> RequestLoad:
    """Requests that need 1 core unless stated otherwise."""
    return RequestLoad(rate=constant(round(rate_per_s * 1000)), cpu_per_request_us=round(cpu_ms * 1000), **more)


def serving(load: RequestLoad, *, ready: int, limit: int | None = 500) -> ServedLoad:
    """A workload with ready pods of half a core each, at second 0."""
    model = simulated.web(requests=load, pod=simulated.pod(limit=limit))
    made = ServedLoad(model, 0)
    made.set_ready(ready, 0)
    return made


@pytest.mark.parametrize("idle_milli", [(500, 0), (0, 500)], ids=["first", "last"])
def test_a_container_whose_idle_use_takes_its_limit_leaves_the_pod_no_capacity(idle_milli: tuple[int, int]):
    """The container that is full first decides, whichever it is."""
    containers = [
        ContainerModel(name=str(idle), cpu_limit_milli=500, idle_cpu_ucores=idle * 1000, load_permille=500)
        for idle in idle_milli
    ]
    assert WorkloadModel(key="default/web", pod=PodModel(containers=tuple(containers))).cpu_capacity_ucores == 0


def test_enough_pods_serve_all():
    """Two pods of half a core serve one core: nothing waits."""
    load = serving(requests(), ready=2)
    load.advance(10_000)
    assert (load.served, load.backlog, load.lost) == (CORE * 10_000, 0, 0)
    assert load.work_of_each == CORE * 5_000


def test_requests_wait_up_to_their_timeout():
    """One pod serves half of the load; of the rest, ten seconds of its work wait, and more is lost."""
    load = serving(requests(timeout_ms=10_000), ready=1)
    load.advance(30_000)
    assert load.backlog == CORE // 2 * 10_000
    assert load.lost == CORE // 2 * 20_000


def test_a_queue_loses_nothing():
    """Without a timeout all of it waits, also while no pod is ready, and is served later."""
    load = serving(requests(timeout_ms=None), ready=0)
    load.advance(10_000)
    assert (load.backlog, load.waiting_milli) == (CORE * 10_000, 100_000)
    load.set_ready(4, 10_000)
    load.advance(20_000)
    assert (load.backlog, load.lost) == (0, 0)


def test_without_a_ready_pod_requests_are_refused():
    """A client gets no connection, so nothing waits."""
    load = serving(requests(), ready=0)
    load.advance(1_000)
    assert (load.backlog, load.lost, load.latency_ms()) == (0, CORE * 1_000, None)


def test_a_pod_that_ends_loses_its_requests():
    """One of two pods has half of what waits."""
    load = serving(requests(rate_per_s=20, timeout_ms=10_000), ready=2)
    load.advance(4_000)
    before = load.backlog
    load.lose_share(2)
    assert load.backlog == before - before // 2


@pytest.mark.parametrize(
    ("rate_per_s", "limit", "latency_ms"),
    [
        pytest.param(0, 1000, 100, id="idle: the service time"),
        pytest.param(5, 1000, 200, id="half used: S / (1 - 0.5)"),
        pytest.param(4, 500, 1000, id="half a core serves in twice the time: 200 ms / (1 - 0.8)"),
        pytest.param(10, 2000, 133.333, id="two cores at 0.5: M/M/2"),
        pytest.param(50, None, 100, id="no limit: the service time"),
    ],
)
def test_response_time(rate_per_s, limit, latency_ms):
    """M/G/1 processor sharing for up to one core, M/M/c beyond."""
    load = serving(requests(rate_per_s), ready=1, limit=limit)
    assert load.latency_ms() == pytest.approx(latency_ms, abs=0.01)


def test_a_backlog_adds_the_time_to_serve_it():
    """One core-second of work waits before a pod of half a core: two seconds."""
    load = serving(requests(7.5, timeout_ms=None), ready=1)
    load.advance(4_000)
    idle = serving(requests(7.5), ready=1)
    assert load.latency_ms() == pytest.approx(idle.latency_ms() + 2_000)


def test_erlang_c():
    """Tables of M/M/c: with one server the utilization, with two at 1 Erlang a third."""
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)


@given(
    st.lists(st.tuples(st.integers(1, 20_000), st.integers(0, 20)), min_size=1, max_size=20),
    st.integers(0, 100),
    st.sampled_from([None, 0, 1_000, 10_000]),
)
def test_work_is_conserved(intervals, rate_per_s, timeout_ms):
    """What arrives is served, waits or is lost."""
    load = serving(requests(rate_per_s, timeout_ms=timeout_ms), ready=1)
    now_ms = 0
    for dt_ms, ready in intervals:
        now_ms += dt_ms
        load.set_ready(ready, now_ms)
    assert load.arrived == load.served + load.backlog + load.lost
    assert min(load.served, load.backlog, load.lost) >= 0
