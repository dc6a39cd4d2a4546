"""Defines the selector store: it has the last selector of each autoscaler, and finds those that select the same pods.

Two autoscalers over one pod would overwrite each other's replicas, so neither scales. Example: after
`store("shop/web", app=web)` the namespace `shop` has `sharing("shop/other", pods)` = {"shop/web"}, if a pod has the
label app=web. The controller and the replay keep one SelectorStore: they `store` a decision's selector, and `forget`
that of a deleted autoscaler. The cost of a look-up grows with the pod's labels, not with the number of autoscalers: a
selector is indexed by the rarest of its equalities.

Source: docs/spec/decision.md 3.1 (Selector checks), docs/spec/controller.md 1 (State).
"""

from collections.abc import Iterator, Sequence

from podscaler.api.machinery.selectors import Selector
from podscaler.core.model.observation import Pod

Label = tuple[str, str]

_ANY: Label = ("", "")
"""The index key of selectors without an equality; no label has an empty key."""


class NamespaceSelectors:
    """The selectors of the autoscalers of one namespace, by their keys `namespace/name`."""

    def __init__(self) -> None:
        self._selectors: dict[str, Selector] = {}
        self._index_label_of: dict[str, Label] = {}
        self._keys_by_label: dict[Label, set[str]] = {}

    def __len__(self) -> int:
        """How many autoscalers have a selector."""
        return len(self._selectors)

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """The keys of the autoscalers other than `key` whose selector matches at least one of the pods."""
        sharing_keys: set[str] = set()
        has_others = len(self._selectors) > (1 if key in self._selectors else 0)
        if not has_others:  # mostly so: no look at the pods then
            return sharing_keys
        for pod in pods:
            for other_key in self._candidates(pod):
                if other_key != key and self._selectors[other_key].matches(pod.labels):
                    sharing_keys.add(other_key)
        return sharing_keys

    def _candidates(self, pod: Pod) -> Iterator[str]:
        """Yields the keys of all autoscalers whose selectors may match the pod: those that its labels index."""
        for label in (_ANY, *pod.labels.items()):
            yield from self._keys_by_label.get(label, ())

    def store(self, key: str, selector: Selector) -> None:
        """Store the selector of `key`, in place of an earlier one; indexed by the label with the fewest autoscalers."""
        if self._selectors.get(key) == selector:
            return
        self.forget(key)
        label = min(selector.equalities, key=self._autoscaler_count, default=_ANY)
        self._selectors[key] = selector
        self._index_label_of[key] = label
        self._keys_by_label.setdefault(label, set()).add(key)

    def forget(self, key: str) -> None:
        """Drop the selector of `key`, if there is one."""
        if self._selectors.pop(key, None) is None:
            return
        label = self._index_label_of.pop(key)
        keys = self._keys_by_label[label]
        keys.discard(key)
        if not keys:
            del self._keys_by_label[label]

    def _autoscaler_count(self, label: Label) -> int:
        return len(self._keys_by_label.get(label, ()))


class RecordedNeighbours:
    """The autoscalers that shared the pods of a sync, as its recording lists them.

    Args:
        keys: the keys (`namespace/name`) of those autoscalers.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """All recorded keys, without `key` itself."""
        del pods
        return {other_key for other_key in self._keys if other_key != key}


class SelectorStore:
    """The selectors of all namespaces, by keys `namespace/name`."""

    def __init__(self) -> None:
        self._namespaces: dict[str, NamespaceSelectors] = {}

    def namespace(self, name: str) -> NamespaceSelectors:
        """The selectors of a namespace, empty if none is stored; valid until the next change."""
        return self._namespaces.get(name) or NamespaceSelectors()

    def store(self, key: str, selector: Selector) -> None:
        """Store the selector of `key`, in place of an earlier one."""
        self._namespaces.setdefault(key.partition("/")[0], NamespaceSelectors()).store(key, selector)

    def forget(self, key: str) -> None:
        """Drop the selector of `key`, if there is one."""
        name = key.partition("/")[0]
        namespace = self._namespaces.get(name)
        if namespace is not None:
            namespace.forget(key)
            if not len(namespace):
                del self._namespaces[name]
