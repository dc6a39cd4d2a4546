"""Reads CPU time and memory of process trees from the operating system in one pass.

`metrics.resource.sampler` calls `read_trees` in a thread. A tree consists of the descendants of a root process and of
the processes of the root's session (orphaned descendants keep their session). A new reading: a field of `TreeReading`,
set in `_process_usage` and `machine_usage`, and added up in `read_trees`.

CPU time is cumulative: a child's time counts as its own while it runs and as its parent's once the parent has waited
for it. The time of a process that no process of the tree waits for is lost, so that the sum can decrease.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

from podscaler.base.clock import NANOSECONDS


@dataclass(frozen=True, slots=True)
class TreeReading:
    """The cumulative CPU time and the current resident memory of a process, a tree or the machine."""

    cpu_s: float
    memory_bytes: int


def read_trees(roots: Iterable[int]) -> dict[int, TreeReading]:
    """The readings of the trees by root pid, without roots that have ended.

    It lists every process of the machine, which takes milliseconds: call it in a thread.
    """
    root_pids = set(roots)
    if not root_pids:
        return {}
    parents = _parents()
    readings: dict[int, TreeReading] = {}
    for pid in parents:
        root = _root_of(pid, parents, root_pids)
        if root is None:
            continue
        usage = _process_usage(pid)
        if usage is not None:
            subtotal = readings.get(root, TreeReading(0.0, 0))
            readings[root] = TreeReading(subtotal.cpu_s + usage.cpu_s, subtotal.memory_bytes + usage.memory_bytes)
    return {root: reading for root, reading in readings.items() if root in parents}


def machine_usage() -> TreeReading:
    """The usage of the whole machine: busy CPU seconds since boot, and memory in use."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted in user and nice already
    memory = psutil.virtual_memory()
    return TreeReading(sum(times) - idle - guest, memory.total - memory.available)


def machine_started_ns() -> int:
    """When the machine booted, nanoseconds since the epoch."""
    return round(psutil.boot_time()) * NANOSECONDS


def _parents() -> Mapping[int, int]:
    """The parent's pid of every process of the machine, by pid; 0 if it has none."""
    return {process.pid: process.info["ppid"] or 0 for process in psutil.process_iter(["ppid"])}


def _root_of(pid: int, parents: Mapping[int, int], roots: set[int]) -> int | None:
    """The root whose tree a process belongs to: its nearest ancestor in `roots`, else the leader of its session."""
    ancestor = pid
    while ancestor > 1:  # process 1 adopts orphans
        if ancestor in roots:
            return ancestor
        ancestor = parents.get(ancestor, 0)
    try:
        session_leader = os.getsid(pid)
    except OSError:
        return None  # it has ended meanwhile
    return session_leader if session_leader in roots else None


def _process_usage(pid: int) -> TreeReading | None:
    """The usage of one process, with its waited-for children's CPU time; None if it cannot be read."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            cpu = process.cpu_times()
            memory_bytes = process.memory_info().rss
    except psutil.Error:
        return None  # it has ended meanwhile, or access is denied
    return TreeReading(cpu.user + cpu.system + cpu.children_user + cpu.children_system, memory_bytes)
