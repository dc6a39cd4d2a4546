"""What a client is warned of when it writes a Service that says more than is heeded.

Called by the record of Service. Source: upstream's warnings for Services. Differs: addresses in unusual notation pass
without a warning.
"""

from podscaler.api.resource.resources import Object

_OLD_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"


def warnings(new: Object, old: Object | None) -> list[str]:
    """The warnings for `new`, in upstream's order and words."""
    del old
    spec = new["spec"]
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    found = []
    if _OLD_HINTS in (new["metadata"].get("annotations") or {}):
        found.append(f"annotation {_OLD_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if is_headless:
        found += _headless(spec)
    elif spec.get("externalIPs") and spec.get("type") != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    return found + _of_type(spec)


def _headless(spec: Object) -> list[str]:
    ignored = [
        ("spec.loadBalancerIP", spec.get("loadBalancerIP")),
        ("spec.externalIPs", spec.get("externalIPs")),
        ("spec.SessionAffinity", spec.get("sessionAffinity") != "None"),
    ]
    return [f"{path} is ignored for headless services" for path, is_set in ignored if is_set]


def _of_type(spec: Object) -> list[str]:
    found = []
    is_name = spec.get("type") == "ExternalName"
    if is_name and spec.get("externalIPs"):
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not is_name and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found
