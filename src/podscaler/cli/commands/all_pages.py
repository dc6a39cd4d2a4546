"""Lists all objects of a collection, page by page, without a watch.

Called by modules of `podscaler.cli.explain`, `podscaler.cli.diagnosis` and `podscaler.cli.lint`. Differs from a
Reflector's list: a token that expires between two pages is an error, not a new list.
"""

from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client, Query
from podscaler.kube.informers import watch_events
from podscaler.kube.informers.cache import Cached
from podscaler.kube.informers.reflector import PAGE_OBJECTS, WatchSource

T = TypeVar("T", bound=Cached)


async def read(client: Client, source: WatchSource[T]) -> list[T]:
    """All objects of a source. Raises StatusError, with code 0 for objects that cannot be decoded."""
    try:
        raw_objects = read_raw(client, source.path, subject=source.subject, query=source.query)
        return [source.read(object_json) async for object_json in raw_objects]
    except ValueError as error:
        raise StatusError(f"a list of {source.subject} cannot be read: {error}", code=0) from None


async def read_raw(client: Client, path: str, *, subject: str, query: Query = ()) -> AsyncIterator[msgspec.Raw]:
    """The objects at `path` as raw JSON; `subject` and `query` as in `Client.get`. Raises StatusError."""
    continue_token = ""
    while True:
        parameters = [*query, ("limit", str(PAGE_OBJECTS)), ("continue", continue_token)]
        page = watch_events.page(await client.get(path, subject=subject, query=parameters))
        for object_json in page.items or ():
            yield object_json
        continue_token = page.metadata.continue_
        if not continue_token:
            return
