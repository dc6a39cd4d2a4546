"""Conversion of HorizontalPodAutoscaler between extensions/v1beta1, the first version of all, and v2.

It is autoscaling/v1 with other names: `scaleRef` is the reference to a scale subresource, and `cpuUtilization` holds
the target. Everything else is kept in v1's annotations. The namespace of a scaleRef, and a subresource other than
`scale`, have no place in later versions and are lost: an autoscaler scales what stands in its own namespace.

Called by the record in `hpa_removed_versions`. Inputs are not changed.

Source: the design of Kubernetes 1.1 (horizontal pod autoscaling).
"""

from podscaler.api.kinds.autoscaling import hpa_v1
from podscaler.api.resource.resources import Object

API_VERSION = "extensions/v1beta1"
MESSAGE = "extensions/v1beta1.HorizontalPodAutoscaler"
SUBRESOURCE = "scale"

_REFERENCE = ("kind", "name", "apiVersion")


def to_v2(hpa: Object) -> Object:
    """The v2 form of an extensions/v1beta1 object."""
    spec = {**(hpa.get("spec") or {})}
    reference, cpu = spec.pop("scaleRef", None) or {}, spec.pop("cpuUtilization", None)
    spec["scaleTargetRef"] = {name: reference.get(name, "") for name in _REFERENCE if name in reference}
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu.get("targetPercentage", 0)
    return hpa_v1.to_v2({**hpa, "spec": spec})


def from_v2(hpa: Object) -> Object:
    """The extensions/v1beta1 form of a v2 object (complete with defaults)."""
    converted = {**hpa_v1.from_v2(hpa), "apiVersion": API_VERSION}
    spec = converted["spec"]
    target = spec.get("scaleTargetRef") or {}
    reference = {name: target[name] for name in _REFERENCE if target.get(name)}
    converted["spec"] = {
        "scaleRef": {**reference, "subresource": SUBRESOURCE},
        **{name: spec[name] for name in ("minReplicas", "maxReplicas") if name in spec},
    }
    if "targetCPUUtilizationPercentage" in spec:
        converted["spec"]["cpuUtilization"] = {"targetPercentage": spec["targetCPUUtilizationPercentage"]}
    return converted
