"""The record of NetworkPolicy (networking.k8s.io/v1): kept for clients; no traffic is kept off by it.

Source: the API reference of networking.k8s.io/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.kinds.networking import networkpolicy_validation
from podscaler.api.machinery import printing
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def fill(policy: Object) -> None:
    """API defaults, in place."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in networkpolicy_validation.PEERS:
        for rule in spec.get(direction) or []:
            for port in rule.get("ports") or []:
                port.setdefault("protocol", "TCP")


def _row(policy: Object, now_ns: int) -> list[Any]:
    selector = label_selector.text((policy.get("spec") or {}).get("podSelector"))
    return [policy["metadata"].get("name", ""), selector, printing.created_age(policy, now_ns)]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="networkpolicies",
    singular="networkpolicy",
    kind="NetworkPolicy",
    versions=(Version("v1", "networking/v1.NetworkPolicy", default=fill),),
    storage_version="v1",
    short_names=("netpol",),
    strategy=Strategy(validate=networkpolicy_validation.faults, has_generation=True),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the policy, unique within its namespace."),
            Column("Pod-Selector", description="The pods that it is for."),
            Column("Age", description="Time since the policy was created."),
        ),
        row=_row,
    ),
)
