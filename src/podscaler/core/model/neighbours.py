"""The selector store: the last selectors of the autoscalers of each namespace, to find those that share pods.

The controller and the replay keep one: they `store` a decision's selector, and `forget` that of a deleted autoscaler.
The cost of finding the autoscalers that match a pod is proportional to the pod's labels, not to the number of
autoscalers: a selector is indexed by the rarest of its equalities.

Source: docs/spec/decision.md 3.1 (Selector checks), docs/spec/controller.md 1 (State).
"""

from collections.abc import Sequence

from podscaler.api.machinery.selectors import Selector
from podscaler.core.model.model import Pod

Label = tuple[str, str]

_ANY: Label = ("", "")
"""The index key of selectors without an equality; no label has an empty key."""


class Namespace:
    """The selectors of one namespace."""

    def __init__(self) -> None:
        self._selectors: dict[str, Selector] = {}
        self._filed_under: dict[str, Label] = {}
        self._keys_by_label: dict[Label, set[str]] = {}

    def __len__(self) -> int:
        """How many autoscalers have a selector."""
        return len(self._selectors)

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """The keys of the autoscalers other than `key` whose selector matches at least one of the pods."""
        others: set[str] = set()
        if len(self._selectors) > (key in self._selectors):
            for pod in pods:
                for label in (_ANY, *pod.labels.items()):
                    for other in self._keys_by_label.get(label, ()):
                        if other != key and self._selectors[other].matches(pod.labels):
                            others.add(other)
        return others

    def store(self, key: str, selector: Selector) -> None:
        """Store the selector of `key`, in place of an earlier one."""
        if self._selectors.get(key) == selector:
            return
        self.forget(key)
        label = min(selector.equalities, key=self._crowd, default=_ANY)
        self._selectors[key] = selector
        self._filed_under[key] = label
        self._keys_by_label.setdefault(label, set()).add(key)

    def forget(self, key: str) -> None:
        """Drop the selector of `key`, if there is one."""
        if self._selectors.pop(key, None) is None:
            return
        label = self._filed_under.pop(key)
        keys = self._keys_by_label[label]
        keys.discard(key)
        if not keys:
            del self._keys_by_label[label]

    def _crowd(self, label: Label) -> int:
        return len(self._keys_by_label.get(label, ()))


class RecordedNeighbours:
    """The autoscalers that shared the pods of a sync, by a recording.

    Args:
        keys: theirs.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """All recorded keys, without `key` itself."""
        del pods
        return {other for other in self._keys if other != key}


class SelectorStore:
    """The selectors of all namespaces, by keys `namespace/name`."""

    def __init__(self) -> None:
        self._namespaces: dict[str, Namespace] = {}

    def namespace(self, name: str) -> Namespace:
        """The selectors of a namespace, empty where none is stored; valid until the next change."""
        return self._namespaces.get(name) or Namespace()

    def store(self, key: str, selector: Selector) -> None:
        """Store the selector of `key`, in place of an earlier one."""
        self._namespaces.setdefault(key.partition("/")[0], Namespace()).store(key, selector)

    def forget(self, key: str) -> None:
        """Drop the selector of `key`, if there is one."""
        name = key.partition("/")[0]
        namespace = self._namespaces.get(name)
        if namespace is not None:
            namespace.forget(key)
            if not len(namespace):
                del self._namespaces[name]
