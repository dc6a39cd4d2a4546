"""The CustomResourceDefinition of MetricSource (podscaler.dev/v1alpha1), as JSON-ready data.

`podscaler crd` prints it, `podscaler up` creates it; deploy/crd has the printed file, which charts install. A new
column: _COLUMNS, and the printed file.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import custom_definitions, metric_source_schema
from podscaler.api.kinds.autoscaling.custom_definitions import KindNames, PrinterColumn

GROUP = custom_definitions.GROUP
VERSION = custom_definitions.VERSION
KIND = "MetricSource"
PLURAL = "metricsources"
SECRET_LABEL = "podscaler.dev/metric-source"  # noqa: S105  # the key of a label, not a secret
"""The label, with the value "true", that allows MetricSources of the namespace to use a Secret."""
QUERY_LABEL = "podscaler.dev/query"
"""The label of an external metric's value with its query; set by `podscaler.sources`, shown by `podscaler explain`."""

_NAMES = KindNames(KIND, PLURAL, short="msrc", category="podscaler")
_READY = '.status.conditions[?(@.type=="Ready")]'
_COLUMNS = (
    PrinterColumn("Ready", "string", f"{_READY}.status", "Whether the last read succeeded."),
    PrinterColumn("Value", "string", ".status.value", "The latest value."),
    PrinterColumn("Query", "string", ".status.query", "What is asked of which system."),
    PrinterColumn("Read", "date", ".status.lastReadTime", "When the latest value was read."),
    PrinterColumn("Reason", "string", f"{_READY}.reason", "Why it is ready or not.", priority=1),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp", "Time since the source was created."),
)


def definition() -> dict[str, Any]:
    """The whole object, without a status."""
    return custom_definitions.definition(_NAMES, _COLUMNS, metric_source_schema.root())
