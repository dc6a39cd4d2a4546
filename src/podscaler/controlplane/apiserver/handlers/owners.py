"""Owner references that stand twice in what a client sends: told, and taken for one.

Called by the handlers that write; pure but for the object, which is changed in place.

Source: upstream's handlers of create, update and patch.
"""

from podscaler.api.resource.resources import Object

_SENT = ".metadata.ownerReferences contains duplicate entries"
_PATCHED = f"{_SENT} after mutating admission happens"
_ADVICE = "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24"


def merge_repeated(obj: Object, warnings: list[str], *, is_patched: bool = False) -> None:
    """Leave one of equal owner references in `obj`, and say in `warnings` of which uids there were more.

    Args:
        obj: as it was sent, or (`is_patched`) as a patch made it, of which upstream thinks that admission did it.
        warnings: what the client is told.
        is_patched: see above.
    """
    metadata = obj.get("metadata") or {}
    owners = metadata.get("ownerReferences") or []
    kept: list[Object] = []
    repeated: dict[str, None] = {}
    for owner in owners:
        if owner in kept:
            repeated[owner.get("uid", "")] = None
        else:
            kept.append(owner)
    if not repeated:
        return
    metadata["ownerReferences"] = kept
    told = f"please fix your requests; duplicate UID(s) observed: {', '.join(repeated)}"
    text = f"{_PATCHED if is_patched else _SENT}; {_ADVICE}; {told}"
    if text not in warnings:  # a patch is tried again where another write came first
        warnings.append(text)
