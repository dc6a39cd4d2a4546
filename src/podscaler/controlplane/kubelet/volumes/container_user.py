"""As which user a container runs.

Called by `launch`. What the machine does not allow is a ConfigFault that says why.

Source: SecurityContext and PodSecurityContext (API reference).
Differs: without runAsUser a container runs as the user of `up`, not as the image's; without runAsGroup its group is
that user's own, not 0.
"""

import pwd
from collections.abc import Mapping
from typing import Any

from podscaler.controlplane.kubelet.launching.launch_plan import Identity
from podscaler.controlplane.kubelet.volumes.references import ConfigFault


def identity(pod: Mapping[str, Any], container: Mapping[str, Any], *, user: int, may_change: bool) -> Identity | None:
    """The ids to change to, None to stay as `up` is.

    Args:
        user: the id of `up`'s user.
        may_change: whether another is possible. Raises ConfigFault.
    """
    pod_context = pod["spec"].get("securityContext") or {}
    context = {**pod_context, **(container.get("securityContext") or {})}
    wanted, group = context.get("runAsUser"), context.get("runAsGroup")
    effective = user if wanted is None else wanted
    if context.get("runAsNonRoot") and effective == 0:
        raise ConfigFault(f'container "{container["name"]}" has runAsNonRoot and would run as root')
    if wanted in (None, user) and group is None:
        return None
    if not may_change:
        asked = f"runAsUser {wanted}" if wanted not in (None, user) else f"runAsGroup {group}"
        raise ConfigFault(f"{asked} is not possible here: `podscaler up` runs as user {user} and may not change users")
    groups = tuple(pod_context.get("supplementalGroups") or ())
    if pod_context.get("fsGroup") is not None:
        groups += (pod_context["fsGroup"],)
    return Identity(effective, group if group is not None else own_group(effective), groups)


def own_group(user: int) -> int:
    """The group of a user of this machine; of one that it does not know, the group of the same number."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user
