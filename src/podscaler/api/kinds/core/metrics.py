"""The records of PodMetrics and NodeMetrics (metrics.k8s.io), which are served without being stored.

The node's sampler provides the objects, as v1beta1, which is their storage version here. An API server without a node
may store them like other objects (`stored_among`), so that tests can create them.

Source: the resource metrics API; the tables of metrics-server.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Version

_RESOURCES_SHOWN = ("cpu", "memory")


def _row(metrics: Object, now_ns: int) -> list[Any]:
    measured = [metrics] if "usage" in metrics else metrics.get("containers") or []
    usages = [container.get("usage") or {} for container in measured]
    totals = [_total(usages, name) for name in _RESOURCES_SHOWN]
    return [metrics["metadata"].get("name", ""), *totals, metrics.get("window", printing.UNKNOWN)]


def _total(usages: list[Object], name: str) -> str:
    parts = [Quantity.parse(usage[name]) for usage in usages if name in usage]
    total = parts[0] if parts else Quantity.parse("0")
    for part in parts[1:]:
        total = total + part
    return str(total)


def _printer(kind: str) -> Printer:
    """The table of a kind."""
    return Printer(
        columns=(
            Column("Name", format="name", description=f"Name of the {kind}."),
            Column("cpu", format="quantity", description="Processor time used, in cores."),
            Column("memory", format="quantity", description="Memory in use, in bytes."),
            Column("Window", format="duration", description="The span over which it was measured."),
        ),
        row=_row,
    )


GROUP = "metrics.k8s.io"


def _record(measured: str, kind: str, *, namespaced: bool) -> Resource:
    """The resource definition of one of the two kinds."""
    return Resource(
        group=GROUP,
        plural=f"{measured}s",
        singular=measured,
        kind=kind,
        versions=(Version("v1", f"metrics/v1.{kind}"), Version("v1beta1", f"metrics/v1beta1.{kind}")),
        storage_version="v1beta1",
        namespaced=namespaced,
        stored=False,
        printer=_printer(measured),
    )


POD_METRICS = _record("pod", "PodMetrics", namespaced=True)
NODE_METRICS = _record("node", "NodeMetrics", namespaced=False)


def stored_among(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """`resources`, with those of metrics as kinds whose objects clients create and the server stores."""
    return tuple(replace(resource, stored=True) if resource.group == GROUP else resource for resource in resources)


def left_out_of(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """`resources` without those of metrics."""
    return tuple(resource for resource in resources if resource.group != GROUP)
