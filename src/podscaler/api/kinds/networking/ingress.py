"""Resource definition of Ingress (networking.k8s.io/v1): defaults, validation, table; no controller here serves it.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. In these functions `path` is the path of a field
(`spec.rules[0].host`); `http_path` and `url_path` are those of an Ingress. A new field needs regenerated type facts
(CONTRIBUTING.md), its default and its validation here; a new column, a cell in `_cells`.

Source: the API reference of networking.k8s.io/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.machinery import ip_addresses, names, ports, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import checks, references, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PATH_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_PATH_ENDS = ("/..", "/.")
_HOSTS_SHOWN = 3


def set_defaults(ingress: Object) -> None:
    """API defaults, in place: the spec and status.loadBalancer are always present."""
    ingress.setdefault("spec", {})
    ingress.setdefault("status", {}).setdefault("loadBalancer", {})


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an Ingress to be stored."""
    spec = new["spec"]
    rules, backend, class_name = spec.get("rules"), spec.get("defaultBackend"), spec.get("ingressClassName")
    errors = []
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    errors += checks.optional(backend, "spec.defaultBackend", _backend_errors)
    errors += checks.each(rules, "spec.rules", _rule_errors)
    errors += checks.each(spec.get("tls"), "spec.tls", _tls_errors)
    errors += checks.well_formed(class_name, "spec.ingressClassName", names.dns_subdomain_errors)
    return errors + (_annotation_errors(new) if old is None else [])


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of an Ingress: invalid addresses and names."""
    status_ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    return checks.each(status_ingress, "status.loadBalancer.ingress", _status_ingress_errors)


def _status_ingress_errors(ingress_item: Object, path: str) -> list[FieldError]:
    """Field errors of one of `status.loadBalancer.ingress`: an IP address, a host name, or both."""
    address, host = ingress_item.get("ip", ""), ingress_item.get("hostname", "")
    errors = checks.holds(
        not address or ip_addresses.find_address(address), f"{path}.ip", address, ip_addresses.INVALID_MESSAGE
    )
    errors += checks.well_formed_if_set(host, f"{path}.hostname", names.dns_subdomain_errors)
    return errors + _ip_address_errors(host, f"{path}.hostname")


def _annotation_errors(new: Object) -> list[FieldError]:
    """The error of an annotation that names another class than `spec.ingressClassName`."""
    annotation_class = (new["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    class_name = new["spec"].get("ingressClassName")
    if annotation_class is None or class_name is None or annotation_class == class_name:
        return []
    message = "must match `ingressClassName` when both are specified"
    return [invalid(f"annotations.{_CLASS_ANNOTATION}", annotation_class, message)]


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    """Errors of the host and the HTTP paths of a rule."""
    host, http = rule.get("host", ""), rule.get("http")
    errors = _ip_address_errors(host, f"{path}.host") + (_host_errors(host, f"{path}.host") if host else [])
    if http is None:
        return errors
    paths = http.get("paths") or []
    errors += checks.present(paths, f"{path}.http.paths")
    return errors + checks.each(paths, f"{path}.http.paths", _http_path_errors)


def _ip_address_errors(host: str, path: str) -> list[FieldError]:
    """The error of a host that is an IP address."""
    is_no_address = ip_addresses.find_address(host) is None
    return checks.holds(is_no_address, path, host, "must be a DNS name, not an IP address")


def _host_errors(host: str, path: str) -> list[FieldError]:
    """The errors of a host name, whose first label may be `*`."""
    rule = names.wildcard_subdomain_errors if "*" in host else names.dns_subdomain_errors
    return checks.well_formed(host, path, rule)


def _tls_errors(tls: Object, path: str) -> list[FieldError]:
    """Field errors of one of `spec.tls`: its host names and the name of its Secret."""
    errors = checks.each(tls.get("hosts"), f"{path}.hosts", _host_errors)
    secret = tls.get("secretName", "")
    return errors + checks.well_formed_if_set(secret, f"{path}.secretName", names.dns_subdomain_errors)


def _http_path_errors(http_path: Object, path: str) -> list[FieldError]:
    """The field errors of an HTTPIngressPath: one path of a rule, with its type and backend."""
    path_type, url_path = http_path.get("pathType"), http_path.get("path", "")
    if path_type is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = []
    if path_type not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", path_type, _PATH_TYPES))
    elif path_type != "ImplementationSpecific":
        errors += checks.well_formed(url_path, f"{path}.path", _url_path_messages)
    elif url_path and not url_path.startswith("/"):
        errors.append(invalid(f"{path}.path", url_path, "must be an absolute path"))
    return errors + _backend_errors(http_path.get("backend") or {}, f"{path}.backend")


def _url_path_messages(url_path: str) -> list[str]:
    """The messages about the path of a URL that is relative, or has parts that proxies resolve differently."""
    messages = [] if url_path.startswith("/") else ["must be an absolute path"]
    messages += [
        f"must not contain '{forbidden_part}'" for forbidden_part in _FORBIDDEN_PATH_PARTS if forbidden_part in url_path
    ]
    return messages + [f"cannot end with '{end}'" for end in _FORBIDDEN_PATH_ENDS if url_path.endswith(end)]


def _backend_errors(backend: Object, path: str) -> list[FieldError]:
    """Errors of a backend: exactly one of a Service and a reference to another object."""
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return references.typed_local_errors(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name", "")
    errors = checks.required_form(name, f"{path}.service.name", names.dns_label_errors)
    return errors + _port_errors(service.get("port") or {}, path)


def _port_errors(port: Object, path: str) -> list[FieldError]:
    """Errors of a Service's port: exactly one of name and number."""
    name, number = port.get("name", ""), port.get("number", 0)
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return checks.well_formed(name, f"{path}.service.port.name", ports.name_messages)
    if number:
        return ports.number_errors(number, f"{path}.service.port.number")
    return [required(path, "port name or number is required")]


def warnings(new: Object, old: Object | None) -> list[str]:
    """The warning about the deprecated annotation of a new Ingress."""
    if old is not None or _CLASS_ANNOTATION not in (new["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _cells(ingress: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: class, the first three hosts, addresses, ports."""
    spec = ingress.get("spec") or {}
    status_ingress = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    hosts = [rule["host"] for rule in spec.get("rules") or [] if rule.get("host")]
    more_text = f" + {len(hosts) - _HOSTS_SHOWN} more..." if len(hosts) > _HOSTS_SHOWN else ""
    hosts_text = ",".join(hosts[:_HOSTS_SHOWN]) + more_text
    return [
        spec.get("ingressClassName") or printing.NONE,
        hosts_text or "*",
        ",".join(ingress_item.get("ip") or ingress_item.get("hostname", "") for ingress_item in status_ingress),
        "80, 443" if spec.get("tls") else "80",
    ]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="ingresses",
    kind="Ingress",
    versions=(Version("v1", "networking/v1.Ingress", default=set_defaults),),
    short_names=("ing",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"loadBalancer": {}}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
        warnings=warnings,
        has_generation=True,
    ),
    printer=tables.named(
        "ingress",
        Column("Class", description="Which controller is to serve it."),
        Column("Hosts", description="The hosts that its rules are for."),
        Column("Address", description="Where it can be reached."),
        Column("Ports", description="The ports that it listens on."),
        cells=_cells,
    ),
)
