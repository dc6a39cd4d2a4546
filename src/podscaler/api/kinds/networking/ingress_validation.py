"""What is wrong with an Ingress.

Called by its record.

Source: upstream's messages; the API reference of networking.k8s.io/v1.
"""

from podscaler.api.machinery import addresses, names, ports
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import local_reference
from podscaler.api.resource.resources import Object

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_REFUSED_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_REFUSED_ENDS = ("/..", "/.")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an Ingress to be stored."""
    spec = new["spec"]
    rules, backend, class_name = spec.get("rules"), spec.get("defaultBackend"), spec.get("ingressClassName")
    found = []
    if not rules and backend is None:
        found.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    found += _backend_faults(backend, "spec.defaultBackend") if backend is not None else []
    for index, rule in enumerate(rules or []):
        found += _rule_faults(rule, f"spec.rules[{index}]")
    for index, part in enumerate(spec.get("tls") or []):
        found += _tls_faults(part, f"spec.tls[{index}]")
    if class_name is not None:
        found += [invalid("spec.ingressClassName", class_name, text) for text in names.dns_subdomain_faults(class_name)]
    return found + (_annotation_faults(new) if old is None else [])


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of an Ingress: addresses that are none."""
    del old
    found = []
    listed = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    for index, each in enumerate(listed):
        path, address, host = f"status.loadBalancer.ingress[{index}]", each.get("ip", ""), each.get("hostname", "")
        if address and addresses.find(address) is None:
            found.append(invalid(f"{path}.ip", address, addresses.FAULT))
        if host:
            found += [invalid(f"{path}.hostname", host, text) for text in names.dns_subdomain_faults(host)]
            found += _address_as_name(host, f"{path}.hostname")
    return found


def _annotation_faults(new: Object) -> list[FieldError]:
    annotated = (new["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    named = new["spec"].get("ingressClassName")
    if annotated is None or named is None or annotated == named:
        return []
    text = "must match `ingressClassName` when both are specified"
    return [invalid(f"annotations.{CLASS_ANNOTATION}", annotated, text)]


def _rule_faults(rule: Object, path: str) -> list[FieldError]:
    host, http = rule.get("host", ""), rule.get("http")
    found = _address_as_name(host, f"{path}.host") + _host_faults(host, f"{path}.host") if host else []
    if http is None:
        return found
    paths = http.get("paths") or []
    if not paths:
        found.append(required(f"{path}.http.paths"))
    for index, each in enumerate(paths):
        found += _path_faults(each, f"{path}.http.paths[{index}]")
    return found


def _address_as_name(host: str, path: str) -> list[FieldError]:
    return [] if addresses.find(host) is None else [invalid(path, host, "must be a DNS name, not an IP address")]


def _host_faults(host: str, path: str) -> list[FieldError]:
    """A leading `*.` stands for any one label."""
    rule = names.wildcard_subdomain_faults if "*" in host else names.dns_subdomain_faults
    return [invalid(path, host, text) for text in rule(host)]


def _tls_faults(part: Object, path: str) -> list[FieldError]:
    found = []
    for index, host in enumerate(part.get("hosts") or []):
        found += _host_faults(host, f"{path}.hosts[{index}]")
    secret = part.get("secretName", "")
    texts = names.dns_subdomain_faults(secret) if secret else []
    return found + [invalid(f"{path}.secretName", secret, text) for text in texts]


def _path_faults(path: Object, place: str) -> list[FieldError]:
    kind, text = path.get("pathType"), path.get("path", "")
    if kind is None:
        return [required(f"{place}.pathType", "pathType must be specified")]
    found = []
    if kind not in _PATH_TYPES:
        found.append(not_supported(f"{place}.pathType", kind, _PATH_TYPES))
    elif kind != "ImplementationSpecific":
        found += [invalid(f"{place}.path", text, why) for why in _path_texts(text)]
    elif text and not text.startswith("/"):
        found.append(invalid(f"{place}.path", text, "must be an absolute path"))
    return found + _backend_faults(path.get("backend") or {}, f"{place}.backend")


def _path_texts(path: str) -> list[str]:
    found = [] if path.startswith("/") else ["must be an absolute path"]
    found += [f"must not contain '{part}'" for part in _REFUSED_PARTS if part in path]
    return found + [f"cannot end with '{end}'" for end in _REFUSED_ENDS if path.endswith(end)]


def _backend_faults(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return local_reference.faults(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name", "")
    texts = names.dns_label_faults(name) if name else []
    found = [invalid(f"{path}.service.name", name, text) for text in texts]
    found += [] if name else [required(f"{path}.service.name")]
    return found + _port_faults(service.get("port") or {}, path)


def _port_faults(port: Object, path: str) -> list[FieldError]:
    name, number = port.get("name", ""), port.get("number", 0)
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return [invalid(f"{path}.service.port.name", name, text) for text in ports.name_texts(name)]
    if number:
        return ports.number_faults(number, f"{path}.service.port.number")
    return [required(path, "port name or number is required")]
