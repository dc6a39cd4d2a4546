"""Names in paths and bodies, which must fit each other.

Called by the handlers; pure.

Source: the API server's checks before an object reaches its kind's validation.
"""

from podscaler.api.machinery import names as name_rules
from podscaler.api.resource.resources import Object
from podscaler.controlplane.apiserver.http import http_errors


def check_in_path(name: str) -> None:
    """Refuse (400) a name that no path segment may be."""
    faults = name_rules.path_segment_faults(name)
    if faults:
        raise http_errors.bad_request(f'Name parameter invalid: "{name}": {", ".join(faults)}')


def settle_namespace(obj: Object, namespace: str) -> None:
    """Give `obj` the namespace of its path; refuse (400) one that names another."""
    metadata = obj.setdefault("metadata", {})
    named = metadata.get("namespace", "")
    if namespace and named and named != namespace:
        raise http_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def check_name(obj: Object, name: str) -> None:
    """Refuse (400) an object with another name than its path's, or with none."""
    named = (obj.get("metadata") or {}).get("name", "")
    if not named:
        raise http_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if named != name:
        raise http_errors.bad_request(f"the name of the object ({named}) does not match the name on the URL ({name})")
