"""Users by client certificate: the common name is the user, the organizations are the groups.

Called by `apiserver.auth_filter` with what TLS has verified against our authority.

Source: X.509 client certificates (Kubernetes documentation, Authenticating).
"""

from typing import Any

from podscaler.controlplane.registry.users import User


def user_of(certificate: Any) -> User | None:
    """The user of a verified certificate (`ssl.SSLSocket.getpeercert`); None without one, or without a name."""
    names: dict[str, list[str]] = {}
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            names.setdefault(key, []).append(value)
    common = names.get("commonName")
    return User(common[0], tuple(names.get("organizationName", ()))) if common else None
