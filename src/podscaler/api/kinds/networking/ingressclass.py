"""Resource definition of IngressClass (networking.k8s.io/v1): the name of a controller of ingresses.

No controller of ingresses runs in the control plane. RESOURCE, at the end, registers the functions above it as hooks,
which `api.resource.resources` explains; `api.kinds.catalog` lists it for the API server. A new field needs regenerated
type facts (CONTRIBUTING.md), its default and its validation here; a new column, a cell in `_cells`.

Source: the API reference of networking.k8s.io/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required, too_long
from podscaler.api.resource import checks, references, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_CONTROLLER_MAX_BYTES = 250
_SCOPES = ("Cluster", "Namespace")


def set_defaults(ingress_class: Object) -> None:
    """API defaults, in place: the scope of parameters is Cluster."""
    parameters = ingress_class.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an IngressClass to be stored; its controller never changes."""
    spec = new.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    is_long = len(controller.encode()) > _CONTROLLER_MAX_BYTES
    errors = [too_long("spec.controller", _CONTROLLER_MAX_BYTES)] if is_long else []
    errors += references.domain_path_errors(controller, "spec.controller")
    errors += checks.optional(parameters, "spec.parameters", _parameter_errors)
    if old is not None and controller != (old.get("spec") or {}).get("controller", ""):
        errors.append(invalid("spec.controller", controller, checks.IMMUTABLE))
    return errors


def _parameter_errors(parameters: Object, path: str) -> list[FieldError]:
    """Errors of the reference to the parameters; the namespace must be set if the scope is Namespace, else not."""
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    errors = references.typed_local_errors(parameters, path)
    if scope not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += checks.well_formed(namespace, f"{path}.namespace", names.dns_label_errors)
    return errors


def _cells(ingress_class: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: controller, `KIND.GROUP/NAME` of the parameters."""
    spec = ingress_class.get("spec") or {}
    parameters = spec.get("parameters") or {}
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    parameters_text = (
        f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}" if parameters else printing.NONE
    )
    return [spec.get("controller", ""), parameters_text]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="ingressclasses",
    kind="IngressClass",
    versions=(Version("v1", "networking/v1.IngressClass", default=set_defaults),),
    namespaced=False,
    strategy=Strategy(validate=validate, has_generation=True),
    printer=tables.named(
        "ingress class",
        Column("Controller", description="Who serves its ingresses."),
        Column("Parameters", description="What configures the controller."),
        cells=_cells,
        note="",
    ),
)
