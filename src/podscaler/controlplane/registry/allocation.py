"""Defines the interface by which a write allocates cluster-wide values (clusterIPs, node ports) to its object.

`registry.object_writer` calls the kind's `Allocator` between the preparation of an object and its validation, also for
dry runs; `network.cluster_ips` has the only one, for Services; another one is registered by `Objects.set_allocator`.
Decisions about writes are serial, so no other write sees the values of a refused one. The life of an `Allocation`:
`commit` when the write is decided, else `release`; `undo` if the commit to disk fails later.

Source: kube-apiserver's generic registry store (BeginCreate, BeginUpdate).
"""

from collections.abc import Callable
from typing import Protocol

from podscaler.api.resource.resources import Object


def _do_nothing() -> None:
    """The default of the functions of an `Allocation`."""


class Allocation:
    """The values allocated to one object; leaving the `with` block without `commit` releases them.

    Args:
        spec: the allocated fields of the spec, such as {"clusterIP": "127.5.224.1"}, which replace the object's own;
            empty if nothing was allocated.
        commit: called when the write is decided.
        release: called if the write is refused, or is a dry run.
        undo: called if the commit of a decided write failed. Reads then return the last commit, and the `undo` of every
            later write has been called.
    """

    def __init__(
        self,
        spec: Object,
        *,
        commit: Callable[[], None] = _do_nothing,
        release: Callable[[], None] = _do_nothing,
        undo: Callable[[], None] = _do_nothing,
    ) -> None:
        self.spec = spec
        self.undo = undo
        self._commit = commit
        self._release = release

    def applied_to(self, obj: Object) -> Object:
        """A copy of the object with the allocated fields, whose other parts are shared; `obj` itself without any."""
        return {**obj, "spec": {**obj["spec"], **self.spec}} if self.spec else obj

    def commit(self) -> None:
        """Keep the values for the object, unless `undo` is called."""
        self._commit()
        self._release = _do_nothing

    def __enter__(self) -> "Allocation":
        return self

    def __exit__(self, *_: object) -> None:
        self._release()


class Allocator(Protocol):
    """Allocates values to the objects of one kind."""

    def __call__(self, new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
        """The allocation for an object.

        Args:
            new: the object to write, prepared but not validated.
            old: the stored object; None for a create.
            is_dry: whether the write is a dry run: the values are checked, and released again.

        Raises StatusError if a value cannot be allocated; nothing is allocated then.
        """
        ...


def allocate_nothing(new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
    """The allocator of kinds without allocated values."""
    del new, old, is_dry
    return Allocation({})
