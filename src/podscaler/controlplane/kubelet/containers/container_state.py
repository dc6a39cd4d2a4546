"""What the node knows of one container, with the transitions between its states.

`pod_worker` keeps one `ContainerState` for each container of its pod and replaces it by what a transition returns;
`lifecycle` decides from them what to do next, `pod_status` shows them to the world. Pure: instants are arguments
(nanoseconds since the epoch).

    Waiting --began--> Running --ended--> Terminated --began--> Running ...
       ^                                      |
       |                    ended, with a delay before the restart
       +---- held --------- (CrashLoopBackOff) <+
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers import backoff
from podscaler.controlplane.kubelet.containers.backoff import CrashLoopBackoff

RestartPolicy = Literal["Always", "OnFailure", "Never"]

UNKNOWN_EXIT_CODE: Final = 137
START_ERROR_EXIT_CODE: Final = 128


class Role(enum.Enum):
    """What a container is to its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It does not run yet, or not again; `reason` in CamelCase."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Its process runs since `started_ns`."""

    started_ns: int
    container_id: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """Its process has ended. `started_ns` is 0 where it never came to run."""

    exit_code: int
    reason: str
    finished_ns: int
    started_ns: int = 0
    container_id: str = ""
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container of a pod.

    Attributes:
        policy: when it is restarted: the container's own restartPolicy, or what the pod's means for its role.
        last: how it ended before its present state.
        ran: whether a process was ever started (or tried) for it: the next start counts as a restart.
        ready: the readiness verdict while it runs.
        started: whether it runs and its startup probe (if it has one) has succeeded.
        retry_at_ns: the instant from which it may be (re)started; None: never again.
        config_failures: failures in a row to create it.
    """

    name: str
    role: Role
    policy: RestartPolicy
    state: State = Waiting("ContainerCreating")
    last: Terminated | None = None
    ran: bool = False
    restart_count: int = 0
    ready: bool = False
    started: bool = False
    retry_at_ns: int | None = 0
    backoff: CrashLoopBackoff = field(default_factory=CrashLoopBackoff)
    config_failures: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return isinstance(self.state, Running)

    @property
    def is_final(self) -> bool:
        """Whether it has ended for good."""
        return isinstance(self.state, Terminated) and self.retry_at_ns is None

    @property
    def exit_code(self) -> int | None:
        """How it ended last; None while it runs, or if it never ran."""
        if isinstance(self.state, Terminated):
            return self.state.exit_code
        return self.last.exit_code if isinstance(self.state, Waiting) and self.last else None


def fresh(pod_spec: Mapping[str, Any]) -> list[ContainerState]:
    """The containers of a pod that was never run, init containers and sidecars first, in the manifest's order."""
    pod_policy: RestartPolicy = pod_spec.get("restartPolicy") or "Always"
    inits = [_fresh_init(spec, pod_policy) for spec in pod_spec.get("initContainers") or []]
    reason = "PodInitializing" if inits else "ContainerCreating"
    mains = [
        ContainerState(spec["name"], Role.MAIN, spec.get("restartPolicy") or pod_policy, Waiting(reason))
        for spec in pod_spec["containers"]
    ]
    return [*inits, *mains]


def _fresh_init(spec: Mapping[str, Any], pod_policy: RestartPolicy) -> ContainerState:
    if spec.get("restartPolicy") == "Always":
        return ContainerState(spec["name"], Role.SIDECAR, "Always", Waiting("PodInitializing"))
    policy: RestartPolicy = spec.get("restartPolicy") or ("Never" if pod_policy == "Never" else "OnFailure")
    return ContainerState(spec["name"], Role.INIT, policy, Waiting("PodInitializing"))


def restarts(policy: RestartPolicy, exit_code: int) -> bool:
    """Whether a container that ended so is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def began(container: ContainerState, *, now_ns: int, container_id: str) -> ContainerState:
    """Its process was started."""
    previous = container.state if isinstance(container.state, Terminated) else container.last
    return replace(
        container,
        state=Running(now_ns, container_id),
        last=previous,
        restart_count=container.restart_count + (1 if container.ran else 0),
        ran=True,
        ready=False,
        started=False,
        config_failures=0,
    )


def ended(container: ContainerState, end: Terminated, *, may_restart: bool, pod: str) -> ContainerState:
    """Its process has ended, or could not be started; `pod` is `name_namespace(uid)` for the message.

    With `may_restart`, the policy decides whether and when it is started again; a delay shows as CrashLoopBackOff.
    """
    # A start that failed was a restart too, though nothing ever ran.
    restarts_now = container.restart_count + (1 if container.ran and not container.is_running else 0)
    stopped = replace(container, ready=False, started=False, ran=True, restart_count=restarts_now)
    if not (may_restart and restarts(container.policy, end.exit_code)):
        return replace(stopped, state=end, retry_at_ns=None)
    memory, due_ns = container.backoff.after_exit(end.finished_ns)
    stopped = replace(stopped, backoff=memory, retry_at_ns=due_ns)
    if due_ns <= end.finished_ns:
        return replace(stopped, state=end)
    delay = _go_seconds((due_ns - end.finished_ns) // NANOSECONDS)
    text = f"back-off {delay} restarting failed container={container.name} pod={pod}"
    return replace(stopped, state=Waiting("CrashLoopBackOff", text), last=end)


def held(container: ContainerState, reason: str, message: str, *, now_ns: int) -> ContainerState:
    """It could not be created; it is tried again after a short delay that grows."""
    failures = container.config_failures + 1
    previous = container.state if isinstance(container.state, Terminated) else container.last
    return replace(
        container,
        state=Waiting(reason, message),
        last=previous,
        config_failures=failures,
        retry_at_ns=now_ns + backoff.config_delay_s(failures) * NANOSECONDS,
    )


def _go_seconds(span_s: int) -> str:
    """Whole seconds as Go prints a duration: 10s, 1m20s, 5m0s."""
    minutes, seconds = divmod(span_s, 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
