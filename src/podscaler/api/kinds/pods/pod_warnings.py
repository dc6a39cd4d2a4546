"""Makes the warnings (Warning headers) about a pod spec, alone or in a template: deprecated or useless fields.

Called by the records of Pod and of the workloads.

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
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def of_pod(new: Object, _old: Object | None) -> list[str]:
    """The warnings for a Pod."""
    return list(_spec_warnings(new.get("spec") or {}, "spec"))


def of_template(new: Object, old: Object | None) -> list[str]:
    """The warnings for the template of a workload; none for an update that does not change the spec."""
    if old is not None and old["metadata"].get("generation") == new["metadata"].get("generation"):
        return []
    return list(_spec_warnings((new["spec"].get("template") or {}).get("spec") or {}, "spec.template.spec"))


def _spec_warnings(spec: Object, path: str) -> Iterator[str]:
    """All warnings about a pod spec, in upstream's order."""
    for key in sorted((spec.get("nodeSelector") or {}).keys() & _DEPRECATED_LABELS.keys()):
        yield f"{path}.nodeSelector[{key}]: {_deprecation(key)}"
    yield from _affinity_warnings(spec.get("affinity") or {}, f"{path}.affinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or []):
        item_path, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _DEPRECATED_LABELS:
            yield f"{item_path}.topologyKey: {key} is {_deprecation(key)}"
        if constraint.get("labelSelector") is None:
            yield f"{item_path}.labelSelector: {_NO_SELECTOR}"
    yield from _volumes_warnings(spec, path)
    yield from _duplicate_warnings(spec.get("hostAliases") or [], "ip", f"{path}.hostAliases")
    yield from _secrets_warnings(spec.get("imagePullSecrets") or [], f"{path}.imagePullSecrets")
    containers = list(_containers_with_paths(spec, path))
    for item_path, container in containers:
        yield from checks.fraction_warnings(container.get("resources") or {}, f"{item_path}.resources")
        yield from _variables_warnings(container.get("env") or [], f"{item_path}.env")
    yield from _ports_warnings(containers)


def _deprecation(label: str) -> str:
    since, successor = _DEPRECATED_LABELS[label]
    return f'deprecated since {since}; use "{successor}" instead'


def _affinity_warnings(affinity: Object, path: str) -> Iterator[str]:
    """Warnings about deprecated node labels in affinities."""
    to_nodes, field_path = affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity"
    terms = (to_nodes.get(scheduling_validation.REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms_with_fields = [
        (f"{scheduling_validation.REQUIRED}.nodeSelectorTerms[{n}]", term) for n, term in enumerate(terms)
    ]
    for index, preference in enumerate(to_nodes.get(scheduling_validation.PREFERRED) or []):
        terms_with_fields.append(
            (f"{scheduling_validation.PREFERRED}[{index}].preference", preference.get("preference") or {})
        )
    for field, term in terms_with_fields:
        for number, requirement in enumerate(term.get("matchExpressions") or []):
            key = requirement.get("key", "")
            if key in _DEPRECATED_LABELS:
                yield f"{field_path}.{field}.matchExpressions[{number}].key: {key} is {_deprecation(key)}"
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_warnings(affinity.get(name) or {}, f"{path}.{name}")


def _pod_affinity_warnings(affinity: Object, path: str) -> Iterator[str]:
    """Warnings about affinity terms without label selector, which match no pod."""
    for index, term in enumerate(affinity.get(scheduling_validation.REQUIRED) or []):
        if term.get("labelSelector") is None:
            yield f"{path}.{scheduling_validation.REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, preference in enumerate(affinity.get(scheduling_validation.PREFERRED) or []):
        if (preference.get("podAffinityTerm") or {}).get("labelSelector") is None:
            field_path = f"{path}.{scheduling_validation.PREFERRED}[{index}].podAffinityTerm"
            yield f"{field_path}.labelSelector: {_NO_SELECTOR}"


def _volumes_warnings(spec: Object, path: str) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or []):
        for kind in volume.keys() & _DEPRECATED_VOLUMES.keys():
            yield f"{path}.volumes[{index}].{kind}: {_DEPRECATED_VOLUMES[kind]}"


def _secrets_warnings(secrets: list[Object], path: str) -> Iterator[str]:
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}[{index}].name: invalid empty name ""'
    yield from _duplicate_warnings([reference for reference in secrets if reference.get("name")], "name", path)


def _duplicate_warnings(parts: list[Object], name: str, path: str) -> Iterator[str]:
    """Warnings about list entries whose field `name` has the value of an earlier one."""
    seen: set[str] = set()
    for index, part in enumerate(parts):
        value = part.get(name, "")
        if value in seen:
            yield f'{path}[{index}].{name}: duplicate {name} "{value}"'
        seen.add(value)


def _containers_with_paths(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    """The containers with their paths, init containers first."""
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            yield f"{path}.{group}[{index}]", container


def _variables_warnings(variables: list[Object], path: str) -> Iterator[str]:
    """The warnings about variables that are set again without a reference to the earlier value."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen and f"$({name})" not in variable.get("value", ""):
            yield f'{path}[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _ports_warnings(containers: list[tuple[str, Object]]) -> Iterator[str]:
    """The warnings about ports that are defined twice in a pod, in one container or in two."""
    ports_by_number: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    names: dict[str, str] = {}
    for container_path, container in containers:
        for index, port in enumerate(container.get("ports") or []):
            path, name = f"{container_path}.ports[{index}]", port.get("name", "")
            earlier_ports = ports_by_number.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for earlier_path, earlier_port in earlier_ports:
                if word := _clash(port, earlier_port):
                    yield f"{path}: {word} port definition with {earlier_path}"
            earlier_ports.append((path, port))
            if name and name in names:
                effect = "services and probes that select ports by name will use"
                yield f'{path}: duplicate port name "{name}" with {names[name]}, {effect} {names[name]}'
            names.setdefault(name, path)


def _clash(port: Object, other: Object) -> str:
    """The kind of conflict between two definitions of a port number; empty if they do not conflict."""
    number, other_number = port.get("hostPort", 0), other.get("hostPort", 0)
    address, other_address = port.get("hostIP", ""), other.get("hostIP", "")
    if (number, address) == (other_number, other_address):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    is_ambiguous = number == other_number and bool(address) != bool(other_address)
    return "dangerously ambiguous" if is_ambiguous else ""
