"""Keeps the user on whose behalf the current asyncio task writes, in a context variable.

`apiserver.auth_filter` sets it for each request, `registry.Registry` for each write of a controller or of the node; the
admission plugins (`admission.rbac_escalation`, `admission.certificate_admission`) and the reviews for webhooks and
policies read it. There is no default: without a user, reading it is an error 403.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.users import User

_USER: ContextVar[User] = ContextVar("podscaler-acting-user")


def set_user(user: User) -> None:
    """Set the user for the rest of the current task."""
    _USER.set(user)


@contextmanager
def as_user(user: User) -> Iterator[None]:
    """Set the user of the current task within the block."""
    reset_token = _USER.set(user)
    try:
        yield
    finally:
        _USER.reset(reset_token)


def current() -> User:
    """The user of the current task. Raises StatusError 403 if none is set."""
    user = _USER.get(None)
    if user is None:
        raise StatusError("forbidden: the author of this write is not known", code=403, reason="Forbidden", details={})
    return user
