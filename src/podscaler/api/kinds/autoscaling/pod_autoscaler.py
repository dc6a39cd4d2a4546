"""Makes the CustomResourceDefinition of PodAutoscaler (podscaler.dev/v1alpha1), podscaler's own kind of autoscaler.

`podscaler crd` prints it; deploy/crd has the printed file, which charts install.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import pod_autoscaler_schema

GROUP = "podscaler.dev"
VERSION = "v1alpha1"
KIND = "PodAutoscaler"
PLURAL = "podautoscalers"

_COLUMNS = (
    ("Kind", "string", ".spec.scaleTargetRef.kind", "The kind of the object whose replicas are scaled."),
    ("Target", "string", ".spec.scaleTargetRef.name", "The object whose replicas are scaled."),
    (
        "Current",
        "integer",
        ".status.currentMetrics[0].resource.current.averageUtilization",
        "The utilization of the first metric, in percent of the requests.",
    ),
    ("MinPods", "integer", ".spec.minReplicas", "Lower limit of the number of replicas."),
    ("MaxPods", "integer", ".spec.maxReplicas", "Upper limit of the number of replicas."),
    ("Replicas", "integer", ".status.currentReplicas", "Number of replicas last seen by the autoscaler."),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the autoscaler was created."),
)


def definition() -> dict[str, Any]:
    """The definition as JSON-ready data, without a status."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["pa"],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [_version()],
        },
    }


def _version() -> dict[str, Any]:
    columns = [
        {"name": name, "type": kind, "jsonPath": path, "description": text} for name, kind, path, text in _COLUMNS
    ]
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": pod_autoscaler_schema.root()},
        "subresources": {"status": {}},
    }
