"""Never decide from an autoscaler that is older than our own last write of its status.

The reconciler reports its writes; the loop asks before each sync. Without this, a sync that runs before the watch has
brought the last write back would see old conditions and an old `lastScaleTime`, and write them again.

Source: docs/spec/controller.md 5 (Consistency store): the gate StaleControllerConsistencyHPA.
"""

from dataclasses import dataclass

from podscaler.api.machinery.meta import is_newer_version
from podscaler.kube.informers.cache import Key


@dataclass(frozen=True, slots=True)
class _Written:
    uid: str
    version: str


class ConsistencyStore:
    """The resource version of the last status write of each autoscaler that has not been seen to arrive."""

    def __init__(self) -> None:
        self._written: dict[Key, _Written] = {}

    def wrote(self, key: Key, uid: str, version: str) -> None:
        """A status write gave the object this version; a higher one replaces a lower, another uid any."""
        before = self._written.get(key)
        if before is None or before.uid != uid or is_newer_version(version, before.version):
            self._written[key] = _Written(uid, version)

    def find_lag(self, key: Key, cache_version: str) -> str | None:
        """What to say if the cache, complete up to `cache_version`, is older than our write; None where it is not."""
        written = self._written.get(key)
        if written is None:
            return None
        if is_newer_version(written.version, cache_version):
            return (
                f"read version: {cache_version} is not as new as written version: {written.version} "
                "for group resource horizontalpodautoscalers.autoscaling"
            )
        del self._written[key]
        return None

    def forget(self, key: Key, uid: str | None = None) -> None:
        """The autoscaler is gone; with `uid`, only if the record is of that object."""
        written = self._written.get(key)
        if written is not None and uid in (None, written.uid):
            del self._written[key]
