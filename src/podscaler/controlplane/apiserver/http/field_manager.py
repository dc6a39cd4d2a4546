"""Who writes: the field manager that a request names, or the name of its program.

Called by the handlers of writes.

Source: the API server's managerOrUserAgent.
"""

from podscaler.api.managed_fields.naming import NAME_MAX_BYTES
from podscaler.controlplane.apiserver.http.queries import WriteOptions
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest
from podscaler.controlplane.storage.options import Author


def of(call: ResourceRequest, options: WriteOptions) -> Author:
    """The author of what a request writes."""
    manager = options.field_manager or program(call.request.headers.get("User-Agent", ""))
    return Author(manager, call.served.api_version)


def program(user_agent: str) -> str:
    """The name before the first slash of a User-Agent: what can be printed, as much as a manager's name may have."""
    name = ""
    length = 0
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        length += len(character.encode("utf-8", "replace"))
        if length > NAME_MAX_BYTES:
            break
        name += character
    return name
