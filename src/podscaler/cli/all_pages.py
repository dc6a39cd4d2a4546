"""All objects of a collection, by one look.

`podscaler explain` reads with it what the controller follows by watches.
"""

from typing import TypeVar

from podscaler.errors import StatusError
from podscaler.kube import watch_events
from podscaler.kube.cache import Cached
from podscaler.kube.client import Client
from podscaler.kube.watch import PAGE_OBJECTS, Source

T = TypeVar("T", bound=Cached)


async def read(client: Client, source: Source[T]) -> list[T]:
    """The objects of a source, page by page. Raises StatusError."""
    objects: list[T] = []
    token = ""
    while True:
        query = [*source.query, ("limit", str(PAGE_OBJECTS)), ("continue", token)]
        page = watch_events.page(await client.get(source.path, subject=source.subject, query=query))
        try:
            objects += [source.read(raw) for raw in page.items or ()]
        except ValueError as error:
            raise StatusError(f"a list of {source.subject} cannot be read: {error}", code=0) from None
        token = page.metadata.continue_
        if not token:
            return objects
