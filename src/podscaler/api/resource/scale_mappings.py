"""Maps workloads to autoscaling/v1 Scale and back, and prints a Scale as a Table.

BY_LABEL_SELECTOR and BY_LABEL_PAIRS are used by the records of workloads; PRINTER by the API server for `kubectl get
deploy web --subresource=scale`. Workloads are JSON objects. A kind with another form of selector: a
further ScaleMapping here.

Source: docs/spec/api.md 5 (Scale subresource).
"""

from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Column, Object, Printer, ScaleMapping


def replicas(workload: Object) -> int:
    """`spec.replicas`, 0 when absent."""
    return int((workload.get("spec") or {}).get("replicas") or 0)


def status_replicas(workload: Object) -> int:
    """`status.replicas`, 0 when absent."""
    return int((workload.get("status") or {}).get("replicas") or 0)


def set_replicas(workload: Object, count: int) -> None:
    """Sets `spec.replicas`, in place."""
    workload.setdefault("spec", {})["replicas"] = count


def _read_selector(workload: Object) -> str:
    return label_selector.canonical((workload.get("spec") or {}).get("selector"))


def _read_label_pairs(workload: Object) -> str:
    """The selector of a ReplicationController as text; empty without one."""
    labels = (workload.get("spec") or {}).get("selector") or {}
    return printing.labels(labels) if labels else ""


BY_LABEL_SELECTOR = ScaleMapping(replicas, status_replicas, _read_selector, set_replicas)
"""Deployment, ReplicaSet, StatefulSet: `spec.selector` is a LabelSelector."""

BY_LABEL_PAIRS = ScaleMapping(replicas, status_replicas, _read_label_pairs, set_replicas)
"""ReplicationController: `spec.selector` is a map of labels."""


def _row(scale: Object, now_ns: int) -> list[Any]:
    """The cells of the table row of a Scale."""
    name = scale["metadata"].get("name", "")
    return [name, replicas(scale), status_replicas(scale), printing.created_age(scale, now_ns)]


PRINTER = Printer(
    columns=(
        Column("Name", description="Name of the scaled object."),
        Column("Desired", "integer", description="Number of replicas asked for."),
        Column("Available", "integer", description="Number of replicas observed."),
        Column("Age", description="Time since the scaled object was created."),
    ),
    row=_row,
)
"""The Table form of a Scale object."""
