"""The record of IngressClass (networking.k8s.io/v1): which controller serves an Ingress; none does here.

Source: the API reference of networking.k8s.io/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required, too_long
from podscaler.api.resource import domain_path, local_reference
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

CONTROLLER_MAX_BYTES = 250
_SCOPES = ("Cluster", "Namespace")


def fill(ingress_class: Object) -> None:
    """API defaults, in place."""
    parameters = ingress_class.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an IngressClass to be stored; its controller never changes."""
    spec = new.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    found = []
    if len(controller.encode()) > CONTROLLER_MAX_BYTES:
        found.append(too_long("spec.controller", CONTROLLER_MAX_BYTES))
    found += domain_path.faults(controller, "spec.controller")
    found += _parameter_faults(parameters, "spec.parameters") if parameters is not None else []
    if old is not None and controller != (old.get("spec") or {}).get("controller", ""):
        found.append(invalid("spec.controller", controller, "field is immutable"))
    return found


def _parameter_faults(parameters: Object, path: str) -> list[FieldError]:
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    found = local_reference.faults(parameters, path)
    if scope not in _SCOPES:
        found.append(not_supported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Cluster" and namespace is not None:
        found.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        found.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        found += [invalid(f"{path}.namespace", namespace, text) for text in names.dns_label_faults(str(namespace))]
    return found


def _row(ingress_class: Object, now_ns: int) -> list[Any]:
    spec = ingress_class.get("spec") or {}
    parameters = spec.get("parameters") or {}
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}" if parameters else printing.NONE
    name, age = ingress_class["metadata"].get("name", ""), printing.created_age(ingress_class, now_ns)
    return [name, spec.get("controller", ""), shown, age]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="ingressclasses",
    singular="ingressclass",
    kind="IngressClass",
    versions=(Version("v1", "networking/v1.IngressClass", default=fill),),
    storage_version="v1",
    namespaced=False,
    strategy=Strategy(validate=faults, has_generation=True),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the ingress class."),
            Column("Controller", description="Who serves its ingresses."),
            Column("Parameters", description="What configures the controller."),
            Column("Age", description="Time since the ingress class was created."),
        ),
        row=_row,
    ),
)
