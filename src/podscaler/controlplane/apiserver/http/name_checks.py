"""Checks that the name of a body matches that of the path.

The handlers of requests for one object call it: the name of the path is checked first. PUT .../namespaces/a/pods/x with
the metadata.name `y` is an error 400. `registry.object_preparation.set_namespace` checks the namespace.

Source: kube-apiserver's checks before an object reaches its kind's validation.
"""

from podscaler.api.machinery import names as name_rules
from podscaler.api.resource.resources import Object
from podscaler.controlplane.apiserver.http import http_errors


def check_path_name(name: str) -> None:
    """Check a name in a path. Raises StatusError 400 for one that is no valid path segment."""
    errors = name_rules.path_segment_errors(name)
    if errors:
        raise http_errors.bad_request(f'Name parameter invalid: "{name}": {", ".join(errors)}')


def check_name(obj: Object, path_name: str) -> None:
    """Check that `obj` has the name of the path. Raises StatusError 400 otherwise."""
    name = (obj.get("metadata") or {}).get("name", "")
    if not name:
        raise http_errors.bad_request(
            f"the name of the object ({path_name} based on URL) was undeterminable: name must be provided"
        )
    if name != path_name:
        message = f"the name of the object ({name}) does not match the name on the URL ({path_name})"
        raise http_errors.bad_request(message)
