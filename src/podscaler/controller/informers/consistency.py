"""Detects a watch cache that is older than the controller's own last write.

The controller checks an autoscaler before each sync, and `target_informer` a scale before each read: a sync that runs
before the watch has returned the last write would see old conditions and an old `lastScaleTime`, and write them again.

Source: docs/spec/controller.md 5 (Consistency store): the gate StaleControllerConsistencyHPA.
"""

from typing import NamedTuple

from podscaler.api.machinery.meta import is_newer_version


class WrittenVersion(NamedTuple):
    """The uid of an object, and the resourceVersion that the controller's last write gave it."""

    uid: str
    version: str


def latest(remembered: WrittenVersion | None, written: WrittenVersion) -> WrittenVersion:
    """The version to remember after a write: a higher version replaces a lower one, another uid replaces any."""
    if remembered is None or remembered.uid != written.uid or is_newer_version(written.version, remembered.version):
        return written
    return remembered


def find_lag(written_version: WrittenVersion | None, cache_version: str) -> str | None:
    """kube-controller-manager's message if a cache, complete up to `cache_version`, lacks the write; else None.

    The message names autoscalers; of scales only whether there is one counts.
    """
    if written_version is None or not is_newer_version(written_version.version, cache_version):
        return None
    return (
        f"read version: {cache_version} is not as new as written version: {written_version.version} "
        "for group resource horizontalpodautoscalers.autoscaling"
    )
