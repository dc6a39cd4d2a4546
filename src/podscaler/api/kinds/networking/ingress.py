"""The record of Ingress (networking.k8s.io/v1): kept for clients; nothing listens for it.

Source: the API reference of networking.k8s.io/v1; upstream's validation messages.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.kinds.networking import ingress_validation
from podscaler.api.machinery import printing
from podscaler.api.resource import status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def fill(ingress: Object) -> None:
    """What an ingress always shows, in place."""
    ingress.setdefault("spec", {})
    ingress.setdefault("status", {}).setdefault("loadBalancer", {})


def warnings(new: Object, old: Object | None) -> list[str]:
    """What the creator of an Ingress is told: the annotation of old is deprecated."""
    name = ingress_validation.CLASS_ANNOTATION
    if old is not None or name not in (new["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{name}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _hosts(ingress: Object) -> Iterator[str]:
    for rule in (ingress.get("spec") or {}).get("rules") or []:
        if rule.get("host"):
            yield rule["host"]


def _row(ingress: Object, now_ns: int) -> list[Any]:
    spec = ingress.get("spec") or {}
    listed = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    hosts = list(_hosts(ingress))
    shown = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    return [
        ingress["metadata"].get("name", ""),
        spec.get("ingressClassName") or printing.NONE,
        shown or "*",
        ",".join(each.get("ip") or each.get("hostname", "") for each in listed),
        "80, 443" if spec.get("tls") else "80",
        printing.created_age(ingress, now_ns),
    ]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="ingresses",
    singular="ingress",
    kind="Ingress",
    versions=(Version("v1", "networking/v1.Ingress", default=fill),),
    storage_version="v1",
    short_names=("ing",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"loadBalancer": {}}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=ingress_validation.faults,
        validate_status=ingress_validation.status_faults,
        warnings=warnings,
        has_generation=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the ingress, unique within its namespace."),
            Column("Class", description="Which controller is to serve it."),
            Column("Hosts", description="The hosts that its rules are for."),
            Column("Address", description="Where it can be reached."),
            Column("Ports", description="The ports that it listens on."),
            Column("Age", description="Time since the ingress was created."),
        ),
        row=_row,
    ),
)
