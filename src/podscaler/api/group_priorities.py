"""How important API groups and their versions are: the order in which clients see them.

Called by discovery, which lists groups in this order, and by whoever registers them as APIServices. `kubectl get` of a
plural that two groups have takes the group that comes first.

Source: the priorities with which upstream's API server registers its own groups. Differs: groups that upstream knows
nothing of, or serves by other servers, share those of the metrics APIs.
"""

from typing import NamedTuple


class Priority(NamedTuple):
    """Of a group among groups, and of a version within its group; higher ones come first."""

    group: int
    version: int


OTHERS = Priority(100, 100)
"""What metrics servers register themselves with."""
OTHER_GROUPS = frozenset({"custom.metrics.k8s.io", "extensions", "external.metrics.k8s.io", "metrics.k8s.io"})
CUSTOM = Priority(1000, 100)
"""What every group of custom resources has."""

_OWN = Priority(20_000, 1000)
_GROUPS = {
    "": 18_000,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "apiextensions.k8s.io": 16_700,
    "admissionregistration.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
}
_VERSION = 15
_VERSIONS = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("autoscaling", "v2beta1"): 9,
    ("autoscaling", "v2beta2"): 1,
}


def of_version(group: str, version: str) -> Priority:
    """The priority of a group and version; that of custom resources where the group is none of ours."""
    if group == "apiregistration.k8s.io":
        return _OWN
    if group in OTHER_GROUPS:
        return OTHERS
    found = _GROUPS.get(group)
    return Priority(found, _VERSIONS.get((group, version), _VERSION)) if found is not None else CUSTOM
