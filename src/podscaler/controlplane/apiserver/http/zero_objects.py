"""An object of a kind with nothing in it: what a bookmark shows besides its resourceVersion.

Called by `streams`. Go writes the fields of an empty struct that are not marked to be left out; clients decode
bookmarks as objects of the kind and rely on required fields being there.
"""

from functools import cache

from podscaler.api.resource.resources import Object
from podscaler.api.schema import canonical, schema


@cache
def fields_of(message: str) -> Object:
    """The fields that an empty message has in JSON, without kind, apiVersion and metadata; empty where unknown.

    The result is shared: it must not be changed.
    """
    if schema.find_message(message) is None:
        return {}
    return {name: value for name, value in canonical.canonical({}, message).items() if name != "metadata"}
