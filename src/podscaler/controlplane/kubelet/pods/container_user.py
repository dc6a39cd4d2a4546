"""The user, group and supplementary groups that a container runs with.

`container_setup` and `pod_worker` call it. What this machine does not allow is a ContainerConfigError with the reason.

Source: SecurityContext and PodSecurityContext (API reference).
Differs: without runAsUser a container runs as the user of `up`, not as the image's; without runAsGroup its group is
that user's own, not 0.
"""

import pwd
from collections.abc import Mapping
from typing import Any

from podscaler.controlplane.kubelet.launching.container_config import ContainerUser
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError


def container_user(
    pod: Mapping[str, Any], container: Mapping[str, Any], *, user: int, may_change: bool
) -> ContainerUser | None:
    """The ids that the container runs with, None for those of `up`.

    Args:
        user: the numeric id that `up` runs as.
        may_change: whether containers may run as another user.

    Raises ContainerConfigError.
    """
    pod_context = pod["spec"].get("securityContext") or {}
    context = {**pod_context, **(container.get("securityContext") or {})}
    wanted, group = context.get("runAsUser"), context.get("runAsGroup")
    effective = user if wanted is None else wanted
    if context.get("runAsNonRoot") and effective == 0:
        raise ContainerConfigError(f'container "{container["name"]}" has runAsNonRoot and would run as root')
    if wanted in (None, user) and group is None:
        return None
    if not may_change:
        setting = f"runAsUser {wanted}" if wanted not in (None, user) else f"runAsGroup {group}"
        raise ContainerConfigError(
            f"{setting} is not possible here: `podscaler up` runs as user {user} and may not change users"
        )
    groups = tuple(pod_context.get("supplementalGroups") or ())
    if pod_context.get("fsGroup") is not None:
        groups += (pod_context["fsGroup"],)
    return ContainerUser(effective, group if group is not None else own_group(effective), groups)


def own_group(user: int) -> int:
    """The primary group of a user of this machine; for an unknown user, the group of the same number."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user
