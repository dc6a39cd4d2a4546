"""For whom the current task writes: the user of a request, or the control plane itself as `users.SYSTEM`.

`apiserver.auth_filter` sets it for each request once the user is known, `local.LocalRegistry` for each write of a
controller or of the node; `escalation`, which is called deep inside of a write, asks. It is a context variable because
what lies between (objects, writer, store) serves many. Nobody acts by default: a write without an author is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.users import User

_USER: ContextVar[User] = ContextVar("podscaler-acting-user")


def begin(user: User) -> None:
    """From now on this task acts for `user`."""
    _USER.set(user)


@contextmanager
def as_user(user: User) -> Iterator[None]:
    """Within the block, this task acts for `user`."""
    before = _USER.set(user)
    try:
        yield
    finally:
        _USER.reset(before)


def current() -> User:
    """For whom this task acts.

    Raises:
        StatusError: 403 where nobody said so.
    """
    user = _USER.get(None)
    if user is None:
        raise StatusError("forbidden: the author of this write is not known", code=403, reason="Forbidden", details={})
    return user
