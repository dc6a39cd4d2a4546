"""Which Services a change of a Service or a pod concerns, for controllers that write down what is behind a Service.

The endpoint and endpoint slice controllers keep one each. It says what to look at, never what is.
"""

from collections import defaultdict
from collections.abc import Iterable

from podscaler.api.machinery import selectors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent


class SelectedPods:
    """See the module.

    Args:
        settle_s_per_pod: how long changes are collected for each pod of a Service.
        longest_settle_s: at most.
    """

    def __init__(self, settle_s_per_pod: float, longest_settle_s: float) -> None:
        self._settle_s_per_pod = settle_s_per_pod
        self._longest_settle_s = longest_settle_s
        self._selecting = selection.Selecting()
        self._members: defaultdict[Key, set[Key]] = defaultdict(set)
        self._sizes: dict[Key, int] = {}

    def prime(self, services: Iterable[Object]) -> list[Key]:
        """Know these Services and nothing else; returns the keys of those with a selector."""
        self._selecting.clear()
        self._members.clear()
        for service in services:
            self._note(service)
        return list(self._selecting.keys())

    def of_service(self, change: ObjectEvent) -> Iterable[Key]:
        """The Service itself."""
        if change.type == "DELETED":
            self._selecting.drop(change.object)
        else:
            self._note(change.object)
        return [selection.key_of(change.object)]

    def of_pod(self, change: ObjectEvent) -> Iterable[Key]:
        """The Services that select the pod now, and those that did."""
        pod = selection.key_of(change.object)
        now = [] if change.type == "DELETED" else self._selecting.matching(change.object)
        concerned = self._members.pop(pod, set()).union(now)
        if now:
            self._members[pod] = set(now)
        return concerned

    def found(self, key: Key, pods: Iterable[Object]) -> None:
        """Remember what a sync found behind a Service."""
        listed = [selection.key_of(pod) for pod in pods]
        self._sizes[key] = len(listed)
        for pod in listed:
            self._members[pod].add(key)

    def forget(self, key: Key) -> None:
        """The Service is gone, or selects nothing any more."""
        self._sizes.pop(key, None)

    def settle_s(self, key: Key) -> float:
        """How long changes of pods are collected: a large Service is written as a whole, and not for each of them."""
        return min(self._sizes.get(key, 0) * self._settle_s_per_pod, self._longest_settle_s)

    def _note(self, service: Object) -> None:
        if selects(service):
            self._selecting.put(service, selectors.from_labels(service["spec"]["selector"]))
        else:
            self._selecting.drop(service)


def selects(service: Object) -> bool:
    """Whether the pods behind the Service follow from its selector."""
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"
