"""Headers that ask the API server to treat a request as somebody else's.

`config.kubeconfig` and the command line call `headers`; the transport sends them with every request.

Source: "User impersonation" of the Kubernetes documentation; client-go's transport (how keys of extra are escaped).
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

NAME_CHARACTERS = "!#$&'*+-.^_`|~"
"""What a header's name may hold beside letters and digits; a per cent sign is escaped as well."""


def headers(
    user: str, *, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] | None = None
) -> tuple[tuple[str, str], ...]:
    """The headers, in a fixed order; none where nobody is to be impersonated.

    Args:
        user: whom to act for.
        uid: of that user.
        groups: that the user is to be in.
        extra: more facts about the user: keys to values.

    Raises:
        ValueError: for a uid, groups or extra without a user, and for line breaks.
    """
    if not user:
        if uid or groups or extra:
            raise ValueError("is needed where as-uid, as-groups or as-user-extra is given")
        return ()
    found = [("Impersonate-User", user)]
    found += [("Impersonate-Uid", uid)] if uid else []
    found += [("Impersonate-Group", group) for group in groups]
    for key, values in sorted((extra or {}).items()):
        found += [(f"Impersonate-Extra-{quote(key.lower(), safe=NAME_CHARACTERS)}", value) for value in values]
    if any("\r" in value or "\n" in value for _, value in found):
        raise ValueError("holds a line break")
    return tuple(found)
