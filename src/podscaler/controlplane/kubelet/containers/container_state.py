"""The state of one container, the transitions between states, and the back-off of restarts.

`kubelet.pods.pod_worker` keeps one `ContainerState` for each container of its pod and replaces it by the result of a
transition; `pod_actions` computes the next steps from the states, `pod_status` the API's ContainerStatus: a new state
is a case there too. Pure: instants are arguments (nanoseconds since the epoch).

    Waiting --after_start--> Running --after_exit--> Terminated --after_start--> Running ...
    Running --after_exit--> Waiting (CrashLoopBackOff), where the restart is delayed
    Waiting --after_failed_creation--> Waiting (CreateContainerConfigError, ...), tried again after a delay

The first restart is immediate, then the delay is 10 s and doubles up to 300 s. If an exit is more than ten minutes
after the restart was due, the next restart is immediate again.

Source: Pod Lifecycle, "Container states" and "How Pods handle problems with containers" (Kubernetes documentation).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from podscaler.base.clock import NANOSECONDS

RestartPolicy = Literal["Always", "OnFailure", "Never"]

UNKNOWN_EXIT_CODE: Final = 137
"""Of a container whose process ended unobserved, while the node did not run."""
START_ERROR_EXIT_CODE: Final = 128
"""Of a container whose process could not be started."""

BACKOFF_FIRST_S: Final = 10
BACKOFF_MAX_S: Final = 300
BACKOFF_RESET_S: Final = 600
"""An exit later than this after the restart was due resets the delay to 0."""
CREATE_RETRY_FIRST_S: Final = 1
CREATE_RETRY_MAX_S: Final = 15
"""A container that cannot be created (a missing ConfigMap, ...) is tried again soon: the cause is usually fixed."""
_DOUBLINGS_MAX: Final = 10
"""Bounds the power of two in `create_retry_s`: failures are not bounded, and 2**10 s exceed CREATE_RETRY_MAX_S."""


class Role(enum.Enum):
    """The kind of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The container has no process: it was not started yet, or waits for its restart.

    Attributes:
        reason: in CamelCase (`ContainerCreating`, `CrashLoopBackOff`).
        message: for people; may be empty.
    """

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """The container's process runs since `started_ns`."""

    started_ns: int
    container_id: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """The container's process has exited, or could not be started.

    Attributes:
        reason: `Completed`, `Error`, ...
        started_ns, container_id: 0 and empty if the process could not be started.
        message: for people; may be empty.
    """

    exit_code: int
    reason: str
    finished_ns: int
    started_ns: int = 0
    container_id: str = ""
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class CrashLoopBackoff:
    """The back-off of a container's restarts.

    Attributes:
        delay_s: the delay before the restart after the next exit.
        restart_due_ns: when the restart after the last exit is due, 0 before the first exit.
    """

    delay_s: int = 0
    restart_due_ns: int = 0

    def with_exit(self, finished_ns: int) -> "CrashLoopBackoff":
        """The back-off after one more exit, at `finished_ns`."""
        delay_s = 0 if finished_ns - self.restart_due_ns > BACKOFF_RESET_S * NANOSECONDS else self.delay_s
        due_ns = finished_ns + delay_s * NANOSECONDS
        next_delay_s = min(delay_s * 2, BACKOFF_MAX_S) if delay_s else BACKOFF_FIRST_S
        return CrashLoopBackoff(next_delay_s, due_ns)


def create_retry_s(failures: int) -> int:
    """Seconds to wait after the n-th failure in a row (n from 1) to create a container."""
    return min(CREATE_RETRY_FIRST_S << min(failures - 1, _DOUBLINGS_MAX), CREATE_RETRY_MAX_S)


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container of a pod.

    Attributes:
        policy: the container's own restartPolicy, or that which follows from the pod's for its role.
        last_termination: the termination before its present state, `lastState` in the API; None: there is none.
        start_tried: whether a start was ever tried: the next one counts as a restart.
        ready: whether it runs and its readiness probe (if it has one) has succeeded.
        started: whether it runs and its startup probe (if it has one) has succeeded.
        start_due_ns: the instant from which it may be started or restarted (0: at once); None: never again.
        creation_failures: failures in a row to create it.
    """

    name: str
    role: Role
    policy: RestartPolicy
    state: State = Waiting("ContainerCreating")
    last_termination: Terminated | None = None
    start_tried: bool = False
    restart_count: int = 0
    ready: bool = False
    started: bool = False
    start_due_ns: int | None = 0
    backoff: CrashLoopBackoff = field(default_factory=CrashLoopBackoff)
    creation_failures: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return isinstance(self.state, Running)

    @property
    def is_final(self) -> bool:
        """Whether it has terminated and is not restarted."""
        return isinstance(self.state, Terminated) and self.start_due_ns is None

    @property
    def latest_termination(self) -> Terminated | None:
        """Its termination, or else that before its present state; None if its process never ended."""
        return self.state if isinstance(self.state, Terminated) else self.last_termination

    @property
    def next_start_number(self) -> int:
        """Its restart count after one more start, which also names the log of that start."""
        return self.restart_count + (1 if self.start_tried else 0)

    @property
    def exit_code(self) -> int | None:
        """The exit code of its latest termination; None while it runs, or if it never ran."""
        termination = None if self.is_running else self.latest_termination
        return None if termination is None else termination.exit_code


def initial_states(pod_spec: Mapping[str, Any]) -> list[ContainerState]:
    """The containers of a pod that never ran: init containers and sidecars first, in the manifest's order."""
    pod_policy: RestartPolicy = pod_spec.get("restartPolicy") or "Always"
    inits = [_initial_init_state(spec, pod_policy) for spec in pod_spec.get("initContainers") or []]
    reason = "PodInitializing" if inits else "ContainerCreating"
    mains = [
        ContainerState(spec["name"], Role.MAIN, spec.get("restartPolicy") or pod_policy, Waiting(reason))
        for spec in pod_spec["containers"]
    ]
    return [*inits, *mains]


def _initial_init_state(spec: Mapping[str, Any], pod_policy: RestartPolicy) -> ContainerState:
    """The state of an init container or sidecar that never ran; `spec` is its core/v1 Container."""
    if spec.get("restartPolicy") == "Always":
        return ContainerState(spec["name"], Role.SIDECAR, "Always", Waiting("PodInitializing"))
    policy: RestartPolicy = spec.get("restartPolicy") or ("Never" if pod_policy == "Never" else "OnFailure")
    return ContainerState(spec["name"], Role.INIT, policy, Waiting("PodInitializing"))


def is_restarted(policy: RestartPolicy, exit_code: int) -> bool:
    """Whether the policy restarts a container that exited with this code."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def after_start(container: ContainerState, *, now_ns: int, container_id: str) -> ContainerState:
    """The state after its process was started at `now_ns`; `container_id` is the id of this start."""
    return replace(
        container,
        state=Running(now_ns, container_id),
        last_termination=container.latest_termination,
        restart_count=container.next_start_number,
        start_tried=True,
        ready=False,
        started=False,
        creation_failures=0,
    )


def after_exit(container: ContainerState, end: Terminated, *, may_restart: bool, pod_text: str) -> ContainerState:
    """The state after its process has exited, or could not be started.

    Args:
        end: how it ended, with the instant.
        may_restart: whether the policy decides on a restart; False: there is none (the pod is terminated).
        pod_text: `name_namespace(uid)`, for the message of CrashLoopBackOff.
    """
    # `after_start` counts restarts whose process has started; a restart that failed is counted here.
    is_failed_restart = container.start_tried and not container.is_running
    restart_count = container.restart_count + (1 if is_failed_restart else 0)
    stopped = replace(container, ready=False, started=False, start_tried=True, restart_count=restart_count)
    if not (may_restart and is_restarted(container.policy, end.exit_code)):
        return replace(stopped, state=end, start_due_ns=None)
    backoff = container.backoff.with_exit(end.finished_ns)
    due_ns = backoff.restart_due_ns
    stopped = replace(stopped, backoff=backoff, start_due_ns=due_ns)
    if due_ns <= end.finished_ns:  # the restart is immediate: the state stays Terminated until then
        return replace(stopped, state=end)
    delay = _go_duration((due_ns - end.finished_ns) // NANOSECONDS)
    message = f"back-off {delay} restarting failed container={container.name} pod={pod_text}"
    return replace(stopped, state=Waiting("CrashLoopBackOff", message), last_termination=end)


def after_failed_creation(container: ContainerState, reason: str, message: str, *, now_ns: int) -> ContainerState:
    """The state after its creation failed; the delay before the next try doubles from 1 s to 15 s.

    Args:
        reason, message: of the new state, which is Waiting.
    """
    failures = container.creation_failures + 1
    return replace(
        container,
        state=Waiting(reason, message),
        last_termination=container.latest_termination,
        creation_failures=failures,
        start_due_ns=now_ns + create_retry_s(failures) * NANOSECONDS,
    )


def _go_duration(duration_s: int) -> str:
    """Whole seconds as Go prints a duration: 10s, 1m20s, 5m0s."""
    minutes, seconds = divmod(duration_s, 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
