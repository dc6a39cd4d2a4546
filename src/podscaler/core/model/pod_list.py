"""The pods of an observation as an immutable list that keeps what decisions derive from it.

`podscaler.core.calculation` derives the same facts from the same pods at every sync. Whoever observes a workload often,
as the simulation does, passes one PodList until a pod changes, so that they are derived once; for other sequences of
pods `of` makes a PodList that lasts one sync.

Invariant: the derived facts depend on the pods alone, so that a decision is the same with a new PodList.
"""

from collections.abc import Iterable, Mapping

from podscaler.api.machinery.selectors import Selector
from podscaler.core.model.observation import Pod

WITHOUT_USAGE = ("Failed", "Pending")
"""Phases of pods whose samples, if there are any, do not count."""


class PodList(tuple[Pod, ...]):
    """Pods in list order. Each fact is derived when it is read first."""

    _matched: Selector | None = None
    _names: list[str] | None = None
    _latest_start: tuple[int | None] | None = None  # a tuple of the fact, as the fact itself may be None
    _requests_milli: Mapping[str, list[int] | None] = {}

    def has_only(self, selector: Selector) -> bool:
        """Whether a selector matches all pods."""
        if selector is not self._matched and len(_matching_pods(self, selector)) == len(self):
            self._matched = selector
        return selector is self._matched

    @property
    def names(self) -> list[str]:
        """The names of the pods."""
        if self._names is None:
            self._names = [pod.name for pod in self]
        return self._names

    @property
    def latest_start(self) -> int | None:
        """The latest `started_at`; None if there is a pod that does not run, is not ready, or is being deleted."""
        if self._latest_start is None:
            self._latest_start = (_latest_start(self),)
        return self._latest_start[0]

    def requests_milli(self, resource: str) -> list[int] | None:
        """The request of each pod; None if there is a pod with a container without one, or with pod-level requests."""
        if resource not in self._requests_milli:
            self._requests_milli = {**self._requests_milli, resource: _requests_milli(self, resource)}
        return self._requests_milli[resource]


def of(pods: Iterable[Pod]) -> PodList:
    """The pods as a PodList: themselves where they are one."""
    return pods if isinstance(pods, PodList) else PodList(pods)


def matching(pods: Iterable[Pod], selector: Selector) -> PodList:
    """The pods that a selector matches: the same PodList where it matches all pods of one."""
    return pods if isinstance(pods, PodList) and pods.has_only(selector) else PodList(_matching_pods(pods, selector))


def _matching_pods(pods: Iterable[Pod], selector: Selector) -> list[Pod]:
    """The pods whose labels a selector matches."""
    if len(selector.equalities) == 1 and not selector.others:
        ((label, label_value),) = selector.equalities  # most selectors have one equality: no call for each pod
        return [pod for pod in pods if pod.labels.get(label) == label_value]
    return [pod for pod in pods if selector.matches(pod.labels)]


def _latest_start(pods: Iterable[Pod]) -> int | None:
    """The latest start of pods that are all running and ready; None if one of them is not."""
    latest = None
    for pod in pods:
        started_at = pod.started_at
        if started_at is None or pod.ready != "True" or pod.phase in WITHOUT_USAGE or pod.is_deleting:
            return None
        if latest is None or started_at > latest:
            latest = started_at
    return latest


def _requests_milli(pods: Iterable[Pod], resource: str) -> list[int] | None:
    """The request of each pod in thousandths; None if a pod has none, or has pod-level requests."""
    requests_milli = []
    for pod in pods:
        request_milli = pod.requests_milli.get(resource)
        if request_milli is None or pod.pod_level is not None:
            return None
        requests_milli.append(request_milli)
    return requests_milli
