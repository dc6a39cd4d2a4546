"""What is different about the paths of custom resources: refusals of their own.

Called by `dispatch` for them alone. Source: the API server of custom resources; tests/conformance/golden/scale.jsonl.
"""

from dataclasses import replace

from podscaler.api.resource import api_errors as object_refusals
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.apiserver.http.routes import Served

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


def meant(path: ResourcePath, method: str) -> ResourcePath:
    """The path that a request means: a POST creates what its body names, whatever name the path has."""
    return replace(path, name="") if method == "POST" and path.name and not path.subresource else path


def check(served: Served, path: ResourcePath, method: str) -> None:
    """Refuse (404) a subresource that there is not, (405) a method that a path has not, (400) a write of no object."""
    if path.subresource and path.subresource not in served.subresources:
        raise object_refusals.not_found(served.resource, path.name)
    if method in ("PUT", "PATCH") and not path.name:
        raise http_errors.bad_request("name must be provided")
    methods = served.methods(path)
    if methods and method not in methods and not served.is_elsewhere(path):
        raise http_errors.not_supported(_VERBS.get(method, ""), served.resource.group, served.resource.plural)
