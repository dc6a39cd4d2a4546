"""What must hold for every pod, whatever its containers do: a small machine plays plans and ends at random."""

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers import container_state
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Terminated
from podscaler.controlplane.kubelet.pods import pod_actions
from podscaler.controlplane.kubelet.pods.pod_actions import PodActions

POLICIES = st.sampled_from(["Always", "OnFailure", "Never"])


@dataclass
class Machine:
    """Carries plans out at once; time moves to the next instant that a plan waits for."""

    containers: dict[str, ContainerState]
    now_ns: int = NANOSECONDS
    initialized: bool = False
    ending: bool = False
    starts: list[str] = field(default_factory=list)

    def settle(self) -> PodActions:
        """Start and note what the plan says until it says nothing more."""
        while True:
            plan = self.plan()
            for name in plan.start:
                self.starts.append(name)
                self.begin(name)
            if not plan.start:
                return plan

    def plan(self) -> PodActions:
        containers = list(self.containers.values())
        plan = pod_actions.compute_pod_actions(
            containers, initialized=self.initialized, terminating=self.ending, now_ns=self.now_ns
        )
        self.initialized = plan.initialized
        return plan

    def begin(self, name: str) -> None:
        if self.containers[name].role is Role.MAIN:
            inits = [c for c in self.containers.values() if c.role is Role.INIT]
            assert all(c.is_final and c.exit_code == 0 for c in inits)
        begun = container_state.after_start(self.containers[name], now_ns=self.now_ns, container_id="c")
        self.containers[name] = replace(begun, started=True, ready=True)

    def end(self, name: str, code: int) -> None:
        end = Terminated(code, "Error", self.now_ns)
        self.containers[name] = container_state.after_exit(
            self.containers[name], end, may_restart=not self.ending, pod_text="p"
        )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    policy = draw(POLICIES)
    inits = [
        {"name": f"i{n}"} | ({"restartPolicy": "Always"} if draw(st.booleans()) else {})
        for n in range(draw(st.integers(0, 3)))
    ]
    mains = [{"name": f"m{n}"} for n in range(draw(st.integers(1, 3)))]
    spec = {"restartPolicy": policy, "initContainers": inits, "containers": mains}
    return Machine({c.name: c for c in container_state.initial_states(spec)})


@given(machine=machines(), choices=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=30))
def test_every_pod_can_be_ended(machine: Machine, choices: list[tuple[int, int]]) -> None:
    """After any history: regular containers begin after all init containers, and an ended pod comes to its outcome."""
    for choice, code in choices:
        plan = machine.settle()
        running = [name for name, c in machine.containers.items() if c.is_running]
        if running:
            machine.end(running[choice % len(running)], code)
        elif plan.wake_at_ns is not None:
            machine.now_ns = plan.wake_at_ns
    machine.ending = True
    for _ in range(len(machine.containers) + 1):
        for name in (plan := machine.settle()).stop:
            machine.end(name, 143)
    assert plan.outcome is not None
    assert not any(c.is_running for c in machine.containers.values())


@given(machine=machines(), codes=st.lists(st.integers(0, 1), max_size=40))
def test_the_policy_is_kept(machine: Machine, codes: list[int]) -> None:
    """Who may not restart begins once; restart counts are the starts after the first; nobody begins while running."""
    for code in codes:
        plan = machine.settle()
        running = [name for name, c in machine.containers.items() if c.is_running]
        if not running and plan.wake_at_ns is None:
            break
        if running:
            machine.end(running[0], code)
        else:
            machine.now_ns = plan.wake_at_ns or machine.now_ns
    for name, container in machine.containers.items():
        starts = machine.starts.count(name)
        assert container.restart_count == max(0, starts - 1)
        assert starts <= 1 or container.policy != "Never"
