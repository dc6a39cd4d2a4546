"""The CustomResourceDefinition of MetricSource (podscaler.dev/v1alpha1), as JSON-ready data.

`podscaler crd` prints it, `podscaler up` creates it; deploy/crd has the printed file, which charts install.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import metric_source_schema

GROUP = "podscaler.dev"
VERSION = "v1alpha1"
KIND = "MetricSource"
PLURAL = "metricsources"
SECRET_LABEL = "podscaler.dev/metric-source"  # noqa: S105  # the key of a label, not a secret
"""The label, with the value "true", that allows MetricSources of the namespace to use a Secret."""
QUERY_LABEL = "podscaler.dev/query"
"""The label of a value of an external metric that says what was asked of which system; `podscaler explain` shows it."""

_READY = '.status.conditions[?(@.type=="Ready")]'
_COLUMNS = (
    ("Ready", "string", f"{_READY}.status", "Whether the last read succeeded.", 0),
    ("Value", "string", ".status.value", "The latest value.", 0),
    ("Query", "string", ".status.query", "What is asked of which system.", 0),
    ("Read", "date", ".status.lastReadTime", "When the latest value was read.", 0),
    ("Reason", "string", f"{_READY}.reason", "Why it is ready or not.", 1),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the source was created.", 0),
)
"""Name, type, path, description and priority; priority 1 is for `kubectl get -o wide`."""


def definition() -> dict[str, Any]:
    """The whole object, without a status."""
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
                "shortNames": ["msrc"],
                "categories": ["podscaler"],
            },
            "scope": "Namespaced",
            "versions": [_version()],
        },
    }


def _version() -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(*each) for each in _COLUMNS],
        "schema": {"openAPIV3Schema": metric_source_schema.root()},
        "subresources": {"status": {}},
    }


def _column(name: str, kind: str, path: str, text: str, priority: int) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path, "description": text}
    return column | ({"priority": priority} if priority else {})
