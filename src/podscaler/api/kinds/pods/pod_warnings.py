"""Makes the warnings (Warning headers) about a pod spec, alone or in a template: deprecated or useless fields.

`api.kinds.pods.pod` and the records in `api.kinds.apps` register `of_pod` and `of_template` as hooks. Pods and their
parts are JSON objects; `path` is the path of a part in the warnings.

Source: kube-apiserver's warnings about pods. Differs: there is none about volume types that Kubernetes has removed.
"""

from collections.abc import Iterator

from podscaler.api.kinds.pods import scheduling_validation
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
}
"""Deprecated label of nodes -> (the release that deprecated it, its replacement)."""
_DEPRECATED_VOLUMES = {"gitRepo": "deprecated in v1.11, and disabled by default in v1.33+"}
_NO_SELECTOR_WARNING = "a null labelSelector results in matching no pod"


def of_pod(new: Object, _old: Object | None) -> list[str]:
    """The warnings for a Pod."""
    return list(_spec_warnings(new.get("spec") or {}, "spec"))


def of_template(new: Object, old: Object | None) -> list[str]:
    """The warnings for the template of a workload; none for an update that does not change the spec (generation)."""
    if old is not None and old["metadata"].get("generation") == new["metadata"].get("generation"):
        return []
    return list(_spec_warnings((new["spec"].get("template") or {}).get("spec") or {}, "spec.template.spec"))


def _spec_warnings(spec: Object, path: str) -> Iterator[str]:
    """Yields all warnings about a pod spec, in the order of kube-apiserver. A new warning: here, at its place."""
    for key in sorted((spec.get("nodeSelector") or {}).keys() & _DEPRECATED_LABELS.keys()):
        yield f"{path}.nodeSelector[{key}]: {_deprecation(key)}"
    yield from _affinity_warnings(spec.get("affinity") or {}, f"{path}.affinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or []):
        item_path, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _DEPRECATED_LABELS:
            yield f"{item_path}.topologyKey: {key} is {_deprecation(key)}"
        if constraint.get("labelSelector") is None:
            yield f"{item_path}.labelSelector: {_NO_SELECTOR_WARNING}"
    yield from _volume_warnings(spec, path)
    yield from _duplicate_warnings(spec.get("hostAliases") or [], "ip", f"{path}.hostAliases")
    yield from _secret_reference_warnings(spec.get("imagePullSecrets") or [], f"{path}.imagePullSecrets")
    containers = list(_containers_with_paths(spec, path))
    for item_path, container in containers:
        yield from checks.fraction_warnings(container.get("resources") or {}, f"{item_path}.resources")
        yield from _variable_warnings(container.get("env") or [], f"{item_path}.env")
    yield from _port_warnings(containers)


def _deprecation(label: str) -> str:
    """The part of a warning that names the replacement of a deprecated label."""
    release, replacement = _DEPRECATED_LABELS[label]
    return f'deprecated since {release}; use "{replacement}" instead'


def _affinity_warnings(affinity: Object, path: str) -> Iterator[str]:
    """Yields warnings about deprecated node labels, and about affinity terms without a label selector."""
    node_affinity, field_path = affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity"
    required_terms = (node_affinity.get(scheduling_validation.REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms_by_path = {
        f"{scheduling_validation.REQUIRED}.nodeSelectorTerms[{index}]": term
        for index, term in enumerate(required_terms)
    }
    for index, preferred in enumerate(node_affinity.get(scheduling_validation.PREFERRED) or []):
        terms_by_path[f"{scheduling_validation.PREFERRED}[{index}].preference"] = preferred.get("preference") or {}
    for term_path, term in terms_by_path.items():
        for expression_index, requirement in enumerate(term.get("matchExpressions") or []):
            key = requirement.get("key", "")
            if key in _DEPRECATED_LABELS:
                yield f"{field_path}.{term_path}.matchExpressions[{expression_index}].key: {key} is {_deprecation(key)}"
    for field in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_warnings(affinity.get(field) or {}, f"{path}.{field}")


def _pod_affinity_warnings(affinity: Object, path: str) -> Iterator[str]:
    """Yields warnings about affinity terms without label selector, which match no pod."""
    for index, term in enumerate(affinity.get(scheduling_validation.REQUIRED) or []):
        if term.get("labelSelector") is None:
            yield f"{path}.{scheduling_validation.REQUIRED}[{index}].labelSelector: {_NO_SELECTOR_WARNING}"
    for index, preferred in enumerate(affinity.get(scheduling_validation.PREFERRED) or []):
        if (preferred.get("podAffinityTerm") or {}).get("labelSelector") is None:
            field_path = f"{path}.{scheduling_validation.PREFERRED}[{index}].podAffinityTerm"
            yield f"{field_path}.labelSelector: {_NO_SELECTOR_WARNING}"


def _volume_warnings(spec: Object, path: str) -> Iterator[str]:
    """Yields warnings about deprecated types of volumes."""
    for index, volume in enumerate(spec.get("volumes") or []):
        for volume_type in volume.keys() & _DEPRECATED_VOLUMES.keys():
            yield f"{path}.volumes[{index}].{volume_type}: {_DEPRECATED_VOLUMES[volume_type]}"


def _secret_reference_warnings(secret_references: list[Object], path: str) -> Iterator[str]:
    """Yields warnings about references to Secrets without a name, and about repeated names."""
    for index, reference in enumerate(secret_references):
        if not reference.get("name"):
            yield f'{path}[{index}].name: invalid empty name ""'
    yield from _duplicate_warnings(
        [reference for reference in secret_references if reference.get("name")], "name", path
    )


def _duplicate_warnings(items: list[Object], field: str, path: str) -> Iterator[str]:
    """Yields warnings about items whose field `field` has the value of an earlier item."""
    earlier_values: set[str] = set()
    for index, item in enumerate(items):
        field_value = item.get(field, "")
        if field_value in earlier_values:
            yield f'{path}[{index}].{field}: duplicate {field} "{field_value}"'
        earlier_values.add(field_value)


def _containers_with_paths(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    """Yields (path, container) for all containers of a pod spec, init containers first."""
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield f"{path}.{field}[{index}]", container


def _variable_warnings(variables: list[Object], path: str) -> Iterator[str]:
    """Yields warnings about variables that are set again without a reference to the earlier value."""
    earlier_names: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in earlier_names and f"$({name})" not in variable.get("value", ""):
            yield f'{path}[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        earlier_names.add(name)


def _port_warnings(containers: list[tuple[str, Object]]) -> Iterator[str]:
    """Yields warnings about ports of a pod that are defined twice; `containers` are (path, container)."""
    # (containerPort, protocol) -> (path, port) of each definition so far
    ports_by_number: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    path_by_port_name: dict[str, str] = {}
    for container_path, container in containers:
        for index, port in enumerate(container.get("ports") or []):
            path, name = f"{container_path}.ports[{index}]", port.get("name", "")
            earlier_ports = ports_by_number.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for earlier_path, earlier_port in earlier_ports:
                if conflict := _port_conflict(port, earlier_port):
                    yield f"{path}: {conflict} port definition with {earlier_path}"
            earlier_ports.append((path, port))
            if name and name in path_by_port_name:
                effect = "services and probes that select ports by name will use"
                earlier_path = path_by_port_name[name]
                yield f'{path}: duplicate port name "{name}" with {earlier_path}, {effect} {earlier_path}'
            path_by_port_name.setdefault(name, path)


def _port_conflict(port: Object, other_port: Object) -> str:
    """The kind of conflict between two definitions of a containerPort and protocol; empty if they do not conflict.

    Overlapping: at least one has no host port. Ambiguous: the same host port, once on one address of the host and once
    on all (without hostIP).
    """
    host_port, other_host_port = port.get("hostPort", 0), other_port.get("hostPort", 0)
    host_ip, other_host_ip = port.get("hostIP", ""), other_port.get("hostIP", "")
    if (host_port, host_ip) == (other_host_port, other_host_ip):
        return "duplicate"
    if not host_port or not other_host_port:
        return "overlapping"
    is_ambiguous = host_port == other_host_port and bool(host_ip) != bool(other_host_ip)
    return "dangerously ambiguous" if is_ambiguous else ""
