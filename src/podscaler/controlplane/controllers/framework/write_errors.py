"""Writes of controllers that tolerate that the object is gone, and checks of the API errors of writes.

All controllers call it; `remove_finalizer` and `write_status` change the newest stored object. Another error that
controllers have to recognize: an `is_` function here.

Source: Status reasons and causes of the API conventions.
"""

from collections.abc import Awaitable, Iterable

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import Registry


def is_namespace_terminating(error: StatusError) -> bool:
    """Whether a create failed because the namespace is being deleted, so that a retry is useless."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def is_already_exists(error: StatusError) -> bool:
    """Whether a create failed because the name is taken."""
    return error.reason == "AlreadyExists"


async def ignoring_gone(write: Awaitable[object], *, or_replaced: bool = False) -> bool:
    """Await a write to an object that may be gone by now; returns whether it was there.

    Args:
        write: the call of the registry.
        or_replaced: whether an object that was replaced by one of the same name (409 Conflict) counts as gone, too.

    Raises:
        StatusError: any other error.
    """
    try:
        await write
    except StatusError as error:
        if error.code != 404 and not (or_replaced and error.reason == "Conflict"):
            raise
        return False
    return True


async def ignoring_terminating(create: Awaitable[object]) -> bool:
    """Await a create in a namespace that may be being deleted; returns whether it was created. Raises StatusError."""
    try:
        await create
    except StatusError as error:
        if not is_namespace_terminating(error):
            raise
        return False
    return True


async def write_status(registry: Registry, resource: str, obj: Object, status: Object) -> None:
    """Write `status` unless `obj` has it already; an object that is gone is ignored. Raises StatusError."""

    def set_status(newest: Object) -> None:
        newest["status"] = status

    if status != obj.get("status"):
        metadata = obj["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        await ignoring_gone(registry.mutate(resource, namespace, name, set_status, subresource="status"))


async def remove_finalizer(registry: Registry, resource: str, namespace: str, name: str, finalizer: str) -> None:
    """Remove a finalizer from an object, which may be gone. Raises StatusError."""

    def drop_finalizer(newest: Object) -> None:
        finalizers = newest["metadata"].get("finalizers") or []
        newest["metadata"]["finalizers"] = [other for other in finalizers if other != finalizer]

    await ignoring_gone(registry.mutate(resource, namespace, name, drop_finalizer))


def first_error(outcomes: Iterable[object]) -> StatusError | None:
    """The first API error among the outcomes of concurrent writes, None without any.

    Errors of a namespace that is being deleted are left out. Raises ExceptionGroup for exceptions that are not API
    errors: they are defects.

    Args:
        outcomes: of `asyncio.gather(..., return_exceptions=True)`: results and exceptions.
    """
    exceptions = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    api_errors = [exception for exception in exceptions if isinstance(exception, StatusError)]
    if len(api_errors) < len(exceptions):
        raise ExceptionGroup("writes failed", exceptions)
    return next((error for error in api_errors if not is_namespace_terminating(error)), None)
