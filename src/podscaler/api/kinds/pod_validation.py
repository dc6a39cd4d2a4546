"""What is wrong with a pod spec, alone or in a template.

Called by the record of Pod and by `pod_template`. Containers and volumes have modules of their own.

Source: upstream's messages (golden captures; the API reference of core/v1).
"""

from podscaler.api import names
from podscaler.api.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.kinds import addresses, container_validation, metadata, toleration_validation, volume_validation
from podscaler.api.resources import Object

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_INT32_MAX = 2**31 - 1


def faults(pod: Object) -> list[FieldError]:
    """What is wrong with a new Pod, its metadata aside."""
    return spec_faults(pod.get("spec") or {}, "spec", is_template=False)


def spec_faults(spec: Object, path: str, *, is_template: bool) -> list[FieldError]:
    """What is wrong with the pod spec at `path`."""
    volumes = volume_validation.names_of(spec)
    found = volume_validation.faults(spec.get("volumes") or [], f"{path}.volumes")
    found += container_validation.faults(spec, path, volumes)
    found += _policy_faults(spec, path)
    found += metadata.label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    found += _name_faults(spec, path)
    found += _deadline_faults(spec, path)
    found += _host_faults(spec, path)
    found += toleration_validation.faults(spec.get("tolerations") or [], f"{path}.tolerations")
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
    )
    found = []
    for name, rule in rules:
        if value := spec.get(name):
            found += [invalid(f"{path}.{name}", value, text) for text in rule(value)]
    for index, secret in enumerate(spec.get("imagePullSecrets") or []):
        if not secret.get("name"):
            found.append(required(f"{path}.imagePullSecrets[{index}].name"))
    return found


def _deadline_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= _INT32_MAX:
        text = f"must be between 1 and {_INT32_MAX}, inclusive"
        found.append(invalid(f"{path}.activeDeadlineSeconds", deadline_s, text))
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s < 0:
        text = "must be greater than or equal to 0"
        found.append(invalid(f"{path}.terminationGracePeriodSeconds", grace_s, text))
    return found


def _host_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    for index, alias in enumerate(spec.get("hostAliases") or []):
        place = f"{path}.hostAliases[{index}]"
        if addresses.find(alias.get("ip", "")) is None:
            found.append(invalid(f"{place}.ip", alias.get("ip", ""), addresses.FAULT))
        for host in alias.get("hostnames") or []:
            found += [invalid(f"{place}.hostnames", host, text) for text in names.dns_subdomain_faults(host)]
    return found
