"""The records of Ingress and IngressClass (networking.k8s.io/v1): kept for clients; nothing listens for them.

Source: the API reference of networking.k8s.io/v1; upstream's validation messages.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api import names, printing
from podscaler.api.field import FieldError, invalid, not_supported, required
from podscaler.api.kinds import status_subresource
from podscaler.api.resources import Column, Object, Printer, Resource, Strategy, Version

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def fill(ingress: Object) -> None:
    """What an ingress always shows, in place."""
    ingress.setdefault("spec", {})
    ingress.setdefault("status", {}).setdefault("loadBalancer", {})


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an Ingress to be stored."""
    del old
    spec = new["spec"]
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    found = []
    if not rules and backend is None:
        found.append(invalid("spec", spec, "either `defaultBackend` or `rules` must be specified"))
    found += _backend_faults(backend, "spec.defaultBackend") if backend is not None else []
    for index, rule in enumerate(rules):
        found += _host_faults(rule.get("host", ""), f"spec.rules[{index}].host")
        for number, path in enumerate((rule.get("http") or {}).get("paths") or []):
            found += _path_faults(path, f"spec.rules[{index}].http.paths[{number}]")
    return found


def _host_faults(host: str, path: str) -> list[FieldError]:
    """A leading `*.` stands for any one label."""
    return [invalid(path, host, text) for text in names.dns_subdomain_faults(host.removeprefix("*."))] if host else []


def _path_faults(path: Object, place: str) -> list[FieldError]:
    kind, text = path.get("pathType"), path.get("path", "")
    found = []
    if kind is None:
        found.append(required(f"{place}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        found.append(not_supported(f"{place}.pathType", kind, _PATH_TYPES))
    elif not text.startswith("/") and (kind != "ImplementationSpecific" or text):
        found.append(invalid(f"{place}.path", text, "must be an absolute path"))
    return found + _backend_faults(path.get("backend") or {}, f"{place}.backend")


def _backend_faults(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if service is None:
        return [] if resource is not None else [required(path, "must specify either a resource or service backend")]
    found = [] if service.get("name") else [required(f"{path}.service.name")]
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        found.append(required(f"{path}.service.port", "port name or number is required"))
    return found


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


def _class_row(ingress_class: Object, now_ns: int) -> list[Any]:
    spec = ingress_class.get("spec") or {}
    parameters = spec.get("parameters") or {}
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}" if parameters else printing.NONE
    name, age = ingress_class["metadata"].get("name", ""), printing.created_age(ingress_class, now_ns)
    return [name, spec.get("controller", ""), shown, age]


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
        validate=faults,
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

CLASS = Resource(
    group="networking.k8s.io",
    plural="ingressclasses",
    singular="ingressclass",
    kind="IngressClass",
    versions=(Version("v1", "networking/v1.IngressClass"),),
    storage_version="v1",
    namespaced=False,
    strategy=Strategy(has_generation=True),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the ingress class."),
            Column("Controller", description="Who serves its ingresses."),
            Column("Parameters", description="What configures the controller."),
            Column("Age", description="Time since the ingress class was created."),
        ),
        row=_class_row,
    ),
)
