"""The records of PodMetrics and NodeMetrics (metrics.k8s.io), which are served without being stored.

`podscaler.controlplane.metrics.resource` provides the objects, as v1beta1, which is their storage version here. The
module `podscaler.cli.up.control_plane` replaces the records where there is no node: `with_stored_metrics` lets clients,
such as tests, create the objects. POD_METRICS and NODE_METRICS are the records; `api.kinds.catalog` lists them for the
API server. Another resource in the tables: _RESOURCES_SHOWN, and a column in `_printer`.

Source: the resource metrics API; the tables of metrics-server.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Version

GROUP = "metrics.k8s.io"
_RESOURCES_SHOWN = ("cpu", "memory")


def _row(metrics: Object, now_ns: int) -> list[Any]:
    """The cells of a table row: name, cpu and memory (of all containers), window."""
    measured_parts = [metrics] if "usage" in metrics else metrics.get("containers") or []
    usages = [measured_part.get("usage") or {} for measured_part in measured_parts]
    totals = [_total_text(usages, name) for name in _RESOURCES_SHOWN]
    return [metrics["metadata"].get("name", ""), *totals, metrics.get("window", printing.UNKNOWN)]


def _total_text(usages: list[Object], resource: str) -> str:
    """The sum of a resource over the usages that have it, as a quantity; each usage is resource name -> amount."""
    amounts = [Quantity.parse(usage[resource]) for usage in usages if resource in usage]
    total = amounts[0] if amounts else Quantity.parse("0")
    for amount in amounts[1:]:
        total = total + amount
    return str(total)


def _printer(noun: str) -> Printer:
    """The table of a kind; `noun` is `pod` or `node`."""
    return Printer(
        columns=(
            Column("Name", format="name", description=f"Name of the {noun}."),
            Column("cpu", format="quantity", description="Processor time used, in cores."),
            Column("memory", format="quantity", description="Memory in use, in bytes."),
            Column("Window", format="duration", description="The span over which it was measured."),
        ),
        row=_row,
    )


def _record(noun: str, kind: str, *, namespaced: bool) -> Resource:
    """The resource definition of one of the two kinds; `noun` is `pod` or `node`."""
    return Resource(
        group=GROUP,
        plural=f"{noun}s",
        singular=noun,
        kind=kind,
        versions=(Version("v1", f"metrics/v1.{kind}"), Version("v1beta1", f"metrics/v1beta1.{kind}")),
        storage_version="v1beta1",
        namespaced=namespaced,
        stored=False,
        printer=_printer(noun),
    )


POD_METRICS = _record("pod", "PodMetrics", namespaced=True)
NODE_METRICS = _record("node", "NodeMetrics", namespaced=False)


def with_stored_metrics(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """`resources`, with those of metrics.k8s.io as kinds whose objects clients create and the server stores."""
    return tuple(replace(resource, stored=True) if resource.group == GROUP else resource for resource in resources)


def without_metrics(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """`resources` without those of metrics.k8s.io."""
    return tuple(resource for resource in resources if resource.group != GROUP)
