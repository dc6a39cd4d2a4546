"""Makes the CustomResourceDefinition of PodAutoscaler (podscaler.dev/v1alpha1), podscaler's own kind of autoscaler.

`podscaler crd` prints it; deploy/crd has the printed file, which charts install. `podscaler.lint` validates with it. A
new column: _COLUMNS, and the printed file.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import custom_definitions, pod_autoscaler_schema
from podscaler.api.kinds.autoscaling.custom_definitions import KindNames, PrinterColumn

GROUP = custom_definitions.GROUP
VERSION = custom_definitions.VERSION
KIND = "PodAutoscaler"
PLURAL = "podautoscalers"

_NAMES = KindNames(KIND, PLURAL, short="pa", category="all")
_COLUMNS = (
    PrinterColumn("Kind", "string", ".spec.scaleTargetRef.kind", "The kind of the object whose replicas are scaled."),
    PrinterColumn("Target", "string", ".spec.scaleTargetRef.name", "The object whose replicas are scaled."),
    PrinterColumn(
        "Current",
        "integer",
        ".status.currentMetrics[0].resource.current.averageUtilization",
        "The utilization of the first metric, in percent of the requests.",
    ),
    PrinterColumn("MinPods", "integer", ".spec.minReplicas", "Lower limit of the number of replicas."),
    PrinterColumn("MaxPods", "integer", ".spec.maxReplicas", "Upper limit of the number of replicas."),
    PrinterColumn("Replicas", "integer", ".status.currentReplicas", "Number of replicas last seen by the autoscaler."),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp", "Time since the autoscaler was created."),
)


def definition() -> dict[str, Any]:
    """The definition as JSON-ready data, without a status."""
    return custom_definitions.definition(_NAMES, _COLUMNS, pod_autoscaler_schema.root())
