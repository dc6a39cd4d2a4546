"""What is different about the paths of custom resources: refusals of their own.

Called by `dispatch` for them alone. Source: the API server of custom resources; tests/conformance/golden/scale.jsonl.
"""

from podscaler.controlplane import refusals as object_refusals
from podscaler.controlplane.server import refusals
from podscaler.controlplane.server.paths import ResourcePath
from podscaler.controlplane.server.routes import Served


def check(served: Served, path: ResourcePath, method: str) -> None:
    """Refuse (404) a subresource that there is not, and (405) a create while the definition is being deleted."""
    if path.subresource and path.subresource not in served.subresources:
        raise object_refusals.not_found(served.resource, path.name)
    if method == "POST" and not path.name and served.resource.is_ending:
        raise refusals.ending(served.resource.group, served.resource.plural)
    if method in ("PUT", "PATCH") and not path.name:
        raise refusals.bad_request("name must be provided")
