"""JSON merge patch (`application/merge-patch+json`).

Called by `handlers.patching`. Source: RFC 7386.
"""

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """`target` as `patch` changes it; null removes a member, anything but an object replaces.

    Objects that are merged have their members in the order of names, as refusals that quote them do upstream.

    Args:
        target: JSON-ready data; left as it is (the result may share its unchanged parts).
        patch: JSON-ready data.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return dict(sorted(result.items()))
