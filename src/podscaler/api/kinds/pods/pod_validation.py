"""What is wrong with a pod spec, alone or in a template.

Called by the record of Pod and by `pod_template`. Containers and volumes have modules of their own.

Source: upstream's messages (golden captures; the API reference of core/v1).
"""

from podscaler.api.kinds.pods import (
    affinity_validation,
    container_validation,
    dns_config_validation,
    security_context_validation,
    toleration_validation,
    topology_spread_validation,
)
from podscaler.api.kinds.volumes import volume_validation
from podscaler.api.machinery import addresses, names
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import metadata
from podscaler.api.resource.resources import Object

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_SYSTEMS = ("linux", "windows")
_INT32_MAX = 2**31 - 1


def faults(pod: Object, *, old: Object | None = None) -> list[FieldError]:
    """What is wrong with a Pod, its metadata aside; `old` is the stored one."""
    stored = None if old is None else old.get("spec")
    return spec_faults(pod.get("spec") or {}, "spec", is_template=False, old=stored)


def new_faults(pod: Object) -> list[FieldError]:
    """What is wrong with a new Pod, its metadata aside."""
    spec = pod.get("spec") or {}
    found = faults(pod)
    if spec.get("ephemeralContainers"):
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return found


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a Pod: addresses that are none."""
    del old
    status = new.get("status") or {}
    listed = status.get("podIPs") or ([{"ip": status["podIP"]}] if status.get("podIP") else [])
    shown = [(f"status.podIPs[{index}]", each.get("ip", "")) for index, each in enumerate(listed)]
    return [invalid(path, ip, addresses.FAULT) for path, ip in shown if addresses.find(ip) is None]


def spec_faults(spec: Object, path: str, *, is_template: bool, old: Object | None = None) -> list[FieldError]:
    """What is wrong with the pod spec at `path`; `old` is the stored one, whose faults upstream bears with in part."""
    volumes = volume_validation.names_of(spec)
    stored = (old or {}).get("volumes")
    found = volume_validation.faults(spec.get("volumes") or [], f"{path}.volumes", old=stored)
    found += container_validation.faults(spec, path, volumes)
    found += _policy_faults(spec, path)
    found += security_context_validation.pod_faults(spec, path)
    found += affinity_validation.faults(spec.get("affinity") or {}, f"{path}.affinity")
    found += dns_config_validation.faults(spec, f"{path}.dnsConfig")
    found += _gate_faults(spec, path)
    found += topology_spread_validation.faults(
        spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints"
    )
    found += _system_faults(spec.get("os"), f"{path}.os")
    found += metadata.label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    found += _name_faults(spec, path)
    found += _deadline_faults(spec, path)
    found += _host_faults(spec, path)
    found += toleration_validation.faults(spec.get("tolerations") or [], f"{path}.tolerations")
    found += volume_validation.file_key_faults(spec, path)
    if is_template and spec.get("ephemeralContainers"):
        found.append(forbidden(f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return found


def _policy_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    for name, choices in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        value = spec.get(name, "")
        if not value:
            found.append(required(f"{path}.{name}"))
        elif value not in choices:
            found.append(not_supported(f"{path}.{name}", value, choices))
    preemption = spec.get("preemptionPolicy")
    if preemption is not None and preemption not in _PREEMPTION_POLICIES:
        found.append(not_supported(f"{path}.preemptionPolicy", preemption, _PREEMPTION_POLICIES))
    return found


def _name_faults(spec: Object, path: str) -> list[FieldError]:
    rules = (
        ("serviceAccountName", names.dns_subdomain_faults),
        ("nodeName", names.dns_subdomain_faults),
        ("hostname", names.dns_label_faults),
        ("subdomain", names.dns_label_faults),
        ("priorityClassName", names.dns_subdomain_faults),
        ("runtimeClassName", names.dns_subdomain_faults),
        ("hostnameOverride", names.dns_subdomain_faults),
    )
    found = []
    for name, rule in rules:
        if value := spec.get(name):
            found += [invalid(f"{path}.{name}", value, text) for text in rule(value)]
    return found


def _gate_faults(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with what a pod waits for, before it is scheduled and before it is ready."""
    found = []
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        name, place = gate.get("name", ""), f"{path}.schedulingGates[{index}]"
        found += [invalid(place, name, text) for text in names.label_key_faults(name)]
        found += [duplicate(place, name)] if name in seen else []
        seen.add(name)
    if seen and spec.get("nodeName"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden(f"{path}.nodeName", text))
    for index, gate in enumerate(spec.get("readinessGates") or []):
        kind, place = gate.get("conditionType", ""), f"{path}.readinessGates[{index}].conditionType"
        found += [invalid(place, kind, text) for text in names.label_key_faults(kind)]
    return found


def _system_faults(system: Object | None, path: str) -> list[FieldError]:
    if system is None:
        return []
    name = system.get("name", "")
    if not name:
        return [required(f"{path}.name")]
    return [] if name in _SYSTEMS else [not_supported(path, name, _SYSTEMS)]


def _deadline_faults(spec: Object, path: str) -> list[FieldError]:
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is None or 1 <= deadline_s <= _INT32_MAX:
        return []
    text = f"must be between 1 and {_INT32_MAX}, inclusive"
    return [invalid(f"{path}.activeDeadlineSeconds", deadline_s, text)]


def _host_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    for index, alias in enumerate(spec.get("hostAliases") or []):
        place = f"{path}.hostAliases[{index}]"
        if addresses.find(alias.get("ip", "")) is None:
            found.append(invalid(f"{place}.ip", alias.get("ip", ""), addresses.FAULT))
        for host in alias.get("hostnames") or []:
            found += [invalid(f"{place}.hostnames", host, text) for text in names.dns_subdomain_faults(host)]
    return found
