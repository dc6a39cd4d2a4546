"""Converts HorizontalPodAutoscaler between extensions/v1beta1, its oldest version, and autoscaling/v2.

The version is autoscaling/v1 with other names:

    spec: {scaleRef: {kind: Deployment, name: web, subresource: scale}, cpuUtilization: {targetPercentage: 80}}

All other fields of v2 are in the annotations of v1 (`hpa_v1`). The namespace of a scaleRef, and a subresource other
than `scale`, have no fields in later versions and are lost. A new field of v2 needs nothing here: `hpa_v1` keeps it.

`hpa_removed_versions` registers the conversion in a Resource. Arguments are not changed.

Source: the design of Kubernetes 1.1 (horizontal pod autoscaling).
"""

from podscaler.api.kinds.autoscaling import hpa_v1
from podscaler.api.resource.resources import Object

API_VERSION = "extensions/v1beta1"
MESSAGE = "extensions/v1beta1.HorizontalPodAutoscaler"
"""The name of its messages in `api.schema.schema`, by which bodies are decoded."""
SUBRESOURCE = "scale"

_REFERENCE_FIELDS = ("kind", "name", "apiVersion")


def to_v2(hpa: Object) -> Object:
    """The v2 form of an extensions/v1beta1 object."""
    spec = {**(hpa.get("spec") or {})}
    scale_ref, cpu_utilization = spec.pop("scaleRef", None) or {}, spec.pop("cpuUtilization", None)
    spec["scaleTargetRef"] = {name: scale_ref.get(name, "") for name in _REFERENCE_FIELDS if name in scale_ref}
    if cpu_utilization is not None:
        spec["targetCPUUtilizationPercentage"] = cpu_utilization.get("targetPercentage", 0)
    return hpa_v1.to_v2({**hpa, "spec": spec})


def from_v2(hpa: Object) -> Object:
    """The extensions/v1beta1 form of a v2 object, which has its defaults."""
    converted = {**hpa_v1.from_v2(hpa), "apiVersion": API_VERSION}
    spec = converted["spec"]
    target = spec.get("scaleTargetRef") or {}
    scale_ref = {name: target[name] for name in _REFERENCE_FIELDS if target.get(name)}
    converted["spec"] = {
        "scaleRef": {**scale_ref, "subresource": SUBRESOURCE},
        **{name: spec[name] for name in ("minReplicas", "maxReplicas") if name in spec},
    }
    if "targetCPUUtilizationPercentage" in spec:
        converted["spec"]["cpuUtilization"] = {"targetPercentage": spec["targetCPUUtilizationPercentage"]}
    return converted
