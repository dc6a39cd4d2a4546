"""Runs steps that may need objects in a version to which only a webhook can convert them.

`registry.objects` calls `settled` for custom resources whose definition has a conversion webhook (for the API server's
handlers in `Objects.converted`): the step runs, ends with `ConversionNeeded`, the webhook is called, and the step runs
again with its result. So no transaction waits for the network.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from podscaler.api.crd import webhook_conversion
from podscaler.api.crd.webhook_conversion import ConversionNeeded
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError

ATTEMPTS_MAX = 20
"""How often a step runs: each run may need one more version of an object, or of one that was changed meanwhile."""
Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class RemoteConverter(Protocol):
    """Calls conversion webhooks."""

    async def convert(self, needed: ConversionNeeded) -> list[Object]:
        """The converted objects, in their order. Raises StatusError 500."""
        ...


class ConvertsNothing:
    """The converter of a server that calls no webhooks; a RemoteConverter."""

    async def convert(self, needed: ConversionNeeded) -> list[Object]:
        """Raise StatusError 500."""
        raise api_errors.error_without_reason(str(needed))


async def _call_webhook(converter: RemoteConverter, needed: ConversionNeeded) -> list[Object]:
    """The converted objects; an error about a stored object names its revision. Raises StatusError 500."""
    try:
        return await converter.convert(needed)
    except StatusError as error:
        if not needed.stored_revision:
            raise
        message = f"object not decodable revision={needed.stored_revision}: {error.message}"
        raise api_errors.error_without_reason(message) from error


async def _convert_into_scope(converter: RemoteConverter, needed: ConversionNeeded) -> None:
    """Keep the converted objects, or that an optional conversion failed, in the current `webhook_conversion.scope`.

    Raises StatusError 500 if a conversion fails that is not optional.
    """
    try:
        webhook_conversion.keep_converted(needed, await _call_webhook(converter, needed))
    except StatusError as error:
        if not needed.is_optional:
            raise
        _log.warning("managedFields of an object are left as they are: %s", error.message)
        webhook_conversion.keep_failed(needed)


async def settled(converter: RemoteConverter, step: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `step`, which runs again after each conversion that it needs.

    Raises StatusError 500 if a conversion fails that is not optional, or too many are needed; every error of `step`.
    """
    with webhook_conversion.scope():
        for _ in range(ATTEMPTS_MAX):
            try:
                return await step()
            except ConversionNeeded as needed:
                await _convert_into_scope(converter, needed)
    raise api_errors.error_without_reason("the object was changed too often while webhooks converted it")
