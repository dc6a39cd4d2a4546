"""The simulated target of an autoscaler: a workload whose pods become ready after a delay.

`podscaler.testing.scenario` resizes it.

Invariants: resizing takes effect at once; new pods run, and are ready after their delay; scaling down removes pods that
are not ready first, then the youngest.
"""

from collections.abc import Mapping

import msgspec

from podscaler.base.clock import NANOSECONDS
from podscaler.core.model.observation import ContainerRequests, Pod, Scale

LONG_AGO_S = 3600
"""How long the first pods have been ready."""

ONE_CPU: Mapping[str, Mapping[str, int]] = {"app": {"cpu": 1000}}
"""One container that requests one CPU."""


class ScenarioPod(msgspec.Struct):
    """One pod; tests may change its attributes.

    Attributes:
        started_at: the pod's start, nanoseconds since the epoch.
        ready_at: from when the pod is ready, nanoseconds since the epoch; None if it never is.
        containers: requests in thousandths by container and resource.
        reports: whether the metrics APIs have samples of the pod.
    """

    name: str
    started_at: int
    ready_at: int | None
    containers: Mapping[str, Mapping[str, int]]
    phase: str = "Running"
    is_deleting: bool = False
    reports: bool = True

    def is_ready(self, now: int) -> bool:
        """Whether its Ready condition is True."""
        return self.phase == "Running" and self.ready_at is not None and self.ready_at <= now


class ScenarioTarget:
    """A workload that is scaled.

    Args:
        replicas: the number of pods at the start, which have been ready for LONG_AGO_S seconds.
        start: the instant at which the scenario begins.
        containers: the requests of every pod, in thousandths by container and resource.
        ready_after_s: the delay after which a new pod is ready.
        name: the name of the workload, and the value of the label `app` of its pods.
    """

    def __init__(
        self,
        replicas: int,
        *,
        start: int,
        containers: Mapping[str, Mapping[str, int]] = ONE_CPU,
        ready_after_s: float = 0,
        name: str = "web",
    ) -> None:
        self.name = name
        self.replicas = 0
        self.containers = containers
        self.pods: list[ScenarioPod] = []
        self._ready_after_ns = 0  # of the first pods; the delay is that of later ones
        self._made = 0
        self.resize(replicas, start - LONG_AGO_S * NANOSECONDS)
        self._ready_after_ns = round(ready_after_s * NANOSECONDS)

    def resize(self, replicas: int, now: int) -> None:
        """Add or remove pods until there are `replicas`."""
        self.replicas = replicas
        self.pods.sort(key=lambda pod: (not pod.is_ready(now), pod.started_at))
        del self.pods[replicas:]
        while len(self.pods) < replicas:
            ready_at = now + self._ready_after_ns
            self.pods.append(ScenarioPod(f"{self.name}-{self._made}", now, ready_at, self.containers))
            self._made += 1

    def serving(self, now: int) -> list[ScenarioPod]:
        """The pods that are ready and not being deleted, which share the load."""
        return [pod for pod in self.pods if pod.is_ready(now) and not pod.is_deleting]

    def scale(self) -> Scale:
        """The scale subresource."""
        return Scale(self.replicas, len(self.pods), f"app={self.name}")

    def facts(self, now: int) -> tuple[Pod, ...]:
        """The pods as `podscaler.core.decide` takes them."""
        return tuple(_facts(pod, self.name, now) for pod in self.pods)


def _facts(pod: ScenarioPod, app: str, now_ns: int) -> Pod:
    """The pod as decisions take it; `app` is the value of its label, and `ready` is never unknown."""
    containers = tuple(ContainerRequests(name, requests) for name, requests in pod.containers.items())
    is_ready = pod.is_ready(now_ns)
    return Pod(
        name=pod.name,
        labels={"app": app},
        phase=pod.phase,
        is_deleting=pod.is_deleting,
        started_at=pod.started_at,
        ready=str(is_ready),
        ready_changed_at=pod.ready_at if is_ready and pod.ready_at is not None else pod.started_at,
        containers=containers,
    )
