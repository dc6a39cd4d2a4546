"""Priorities of API groups and versions, which decide the order in which clients discover them.

    of_version("apps", "v1")                    Priority(group=17800, version=15)
    of_version("metrics.k8s.io", "v1beta1")     Priority(group=100, version=100)
    of_version("example.com", "v1")             Priority(group=1000, version=100)      a custom resource

Called by discovery, which lists groups by falling priority, and by the controller that registers groups as APIServices.
Where two groups have the same plural, `kubectl get PLURAL` uses the group of the higher priority. A new built-in group:
add it to `_GROUP_PRIORITIES`.

Source: the priorities with which kube-apiserver registers its own groups. Differs: `extensions`, which it no longer
serves, has the priority of the metrics APIs.
"""

from typing import NamedTuple


class Priority(NamedTuple):
    """`groupPriorityMinimum` and `versionPriority` of an APIService: higher ones come first.

    Attributes:
        group: orders groups; all versions of a group have the same.
        version: orders the versions within the group.
    """

    group: int
    version: int


_METRICS_SERVER = Priority(100, 100)
"""The priority with which metrics servers register their groups."""
LOWEST_PRIORITY_GROUPS = frozenset({"custom.metrics.k8s.io", "extensions", "external.metrics.k8s.io", "metrics.k8s.io"})
"""The groups with the priority _METRICS_SERVER."""
_CUSTOM_RESOURCES = Priority(1000, 100)
"""The priority of every group of a CustomResourceDefinition."""

_API_REGISTRATION = Priority(20_000, 1000)
_GROUP_PRIORITIES = {
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
"""Group name -> `Priority.group`; "" is the core group."""
_DEFAULT_VERSION_PRIORITY = 15
_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("autoscaling", "v2beta1"): 9,
    ("autoscaling", "v2beta2"): 1,
}


def of_version(group: str, version: str) -> Priority:
    """The priority of a group and version; _CUSTOM_RESOURCES for a group that is not built in."""
    if group == "apiregistration.k8s.io":
        return _API_REGISTRATION
    if group in LOWEST_PRIORITY_GROUPS:
        return _METRICS_SERVER
    group_priority = _GROUP_PRIORITIES.get(group)
    if group_priority is None:
        return _CUSTOM_RESOURCES
    return Priority(group_priority, _VERSION_PRIORITIES.get((group, version), _DEFAULT_VERSION_PRIORITY))
