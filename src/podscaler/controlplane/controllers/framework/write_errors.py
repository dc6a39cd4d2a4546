"""What a refused write means to a controller; the controllers ask.

Source: Status reasons and causes of the API conventions.
"""

from collections.abc import Awaitable

from podscaler.base.errors import StatusError


def is_namespace_terminating(error: StatusError) -> bool:
    """Whether nothing may be created any more because the namespace is being deleted: not worth a retry."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def is_already_exists(error: StatusError) -> bool:
    """Whether the name is taken."""
    return error.reason == "AlreadyExists"


async def ignoring_gone(write: Awaitable[object], *, another: bool = False) -> None:
    """Await a write to an object that may be gone by now; `another`: or replaced by one of the same name.

    Raises StatusError for any other refusal.
    """
    try:
        await write
    except StatusError as error:
        if error.code != 404 and not (another and error.reason == "Conflict"):
            raise


def first(group: ExceptionGroup[Exception]) -> StatusError:
    """The first refusal of a batch. Raises what else went wrong in it: that is a bug."""
    refused = [error for error in group.exceptions if isinstance(error, StatusError)]
    if len(refused) < len(group.exceptions):
        raise group
    return refused[0]
