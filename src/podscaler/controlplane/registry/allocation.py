"""What the server gives an object while it is written: taken before the object is judged, final once it is committed.

`writing` asks for it between the preparation of an object and its validation, as upstream does, also on dry runs;
`network.cluster_ips` gives Services their addresses. A decision about a write is never interleaved with another, so
that what one has taken and given back nobody has missed. A write that was decided and then not committed (the disk
failed) gives back what it was given: `undo`, which the transaction calls.

Source: upstream's registry store (BeginCreate, BeginUpdate).
"""

from collections.abc import Callable
from typing import Protocol

from podscaler.api.resource.resources import Object


def _do_nothing() -> None:
    pass


class Allocation:
    """What one write is given; left (`with`) without `keep`, it is taken back.

    Args:
        spec: fields of the spec that the object gets, in place of its own; empty where it lacks nothing.
        keep: called once the write is decided.
        take_back: called if it is refused, or is a dry run.
        undo: called if the write was decided (`keep`) and its commit failed; reads show the last commit then, and the
            undo of every later write was called before.
    """

    def __init__(
        self,
        spec: Object,
        *,
        keep: Callable[[], None] = _do_nothing,
        take_back: Callable[[], None] = _do_nothing,
        undo: Callable[[], None] = _do_nothing,
    ) -> None:
        self.spec = spec
        self.undo = undo
        self._keep = keep
        self._take_back = take_back

    def filled(self, obj: Object) -> Object:
        """The object with what it is given; its own parts are not changed."""
        return {**obj, "spec": {**obj["spec"], **self.spec}} if self.spec else obj

    def keep(self) -> None:
        """The object has it from now on, unless `undo` is called."""
        self._keep()
        self._take_back = _do_nothing

    def __enter__(self) -> "Allocation":
        return self

    def __exit__(self, *_: object) -> None:
        self._take_back()


class Give(Protocol):
    """Who gives objects of a kind what they lack."""

    def __call__(self, new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
        """What `new` is given, which is prepared and not yet judged; `old` is stored, None for a new object.

        Raises StatusError where the object cannot have what it asks for; nothing is taken then.
        """
        ...


def nothing(new: Object, old: Object | None, *, is_dry: bool) -> Allocation:
    """For kinds that are given nothing."""
    del new, old, is_dry
    return Allocation({})
