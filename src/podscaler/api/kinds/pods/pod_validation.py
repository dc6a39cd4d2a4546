"""Validates pod specs, alone (Pod) or in the template of a workload.

Called by `api.kinds.pods.pod` and by the records of workloads in `api.kinds.apps`. Other modules of this package
validate containers, scheduling and security contexts, `api.kinds.volumes` volumes; `validate_spec` calls them all. The
check of a new field of the spec is a call in `validate_spec`, in the order in which kube-apiserver reports errors. An
`Object` is the part of an API object that the name of the argument says, as a JSON object; `path` is its path in
errors.

Source: kube-apiserver's messages (tests/conformance/golden; the API reference of core/v1).
"""

import re

from podscaler.api.kinds.pods import container_validation, scheduling_validation, security_context_validation
from podscaler.api.kinds.volumes import volume_validation
from podscaler.api.machinery import ip_addresses, names
from podscaler.api.machinery.field import FieldError, forbidden, required
from podscaler.api.resource import checks, metadata
from podscaler.api.resource.resources import Object

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_OPERATING_SYSTEMS = ("linux", "windows")
_INT32_MAX = 2**31 - 1
_NAMESERVERS_MAX = 3
_SEARCHES_MAX = 32
_SEARCHES_MAX_CHARACTERS = 2048
"""Bounds of `dnsConfig`; the search domains are counted together, with a space between two."""
_LABEL_TEXT = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_TEXT = rf"{_LABEL_TEXT}(\.{_LABEL_TEXT})*"
_SEARCH_DOMAIN = re.compile(_SEARCH_TEXT)
_SEARCH_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start"
    f" and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH_TEXT}')"
)


def validate_new(pod: Object) -> list[FieldError]:
    """The field errors of the spec of a new Pod."""
    spec = pod.get("spec") or {}
    errors = validate_spec(spec, "spec", is_template=False)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a Pod: invalid IP addresses; all at `status.podIPs`, as in kube-apiserver."""
    status = new.get("status") or {}
    pod_ips = status.get("podIPs") or ([{"ip": status["podIP"]}] if status.get("podIP") else [])
    return checks.each([pod_ip.get("ip", "") for pod_ip in pod_ips], "status.podIPs", _address_errors)


def _address_errors(ip: str, path: str) -> list[FieldError]:
    return checks.holds(ip_addresses.find_address(ip), path, ip, ip_addresses.INVALID_MESSAGE)


def validate_template(template: Object, path: str, *, old: Object | None = None) -> list[FieldError]:
    """The field errors of a pod template.

    Args:
        template: the template with all defaults.
        old: the stored template, None for a new one; of a pod spec that equals the stored one no errors are reported.
    """
    template_metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = metadata.label_errors(template_metadata.get("labels") or {}, f"{path}.labels")
    errors += metadata.annotation_errors(template_metadata.get("annotations") or {}, f"{path}.annotations")
    old_spec = None if old is None else old.get("spec")
    if old is None or spec != old_spec:
        errors += validate_spec(spec, f"{path}.spec", is_template=True, old_spec=old_spec)
    return errors


def validate_spec(spec: Object, path: str, *, is_template: bool, old_spec: Object | None = None) -> list[FieldError]:
    """The field errors of a pod spec.

    Args:
        spec: the spec with all defaults.
        is_template: whether it belongs to the template of a workload.
        old_spec: the stored spec, None for a new one; errors of volumes that `volume_validation` tolerates in stored
            specs are not reported again.
    """
    volume_names = volume_validation.names_of(spec)
    errors = volume_validation.validate(
        spec.get("volumes") or [], f"{path}.volumes", old_volumes=(old_spec or {}).get("volumes")
    )
    errors += container_validation.validate(spec, path, volume_names)
    errors += checks.required_one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTART_POLICIES)
    errors += checks.required_one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    errors += checks.optional_one_of(spec.get("preemptionPolicy"), f"{path}.preemptionPolicy", _PREEMPTION_POLICIES)
    errors += security_context_validation.pod_errors(spec, path)
    errors += checks.optional(spec.get("affinity"), f"{path}.affinity", scheduling_validation.affinity_errors)
    errors += _dns_config_errors(spec, f"{path}.dnsConfig")
    errors += _gate_errors(spec, path)
    spread_constraints = spec.get("topologySpreadConstraints") or []
    errors += scheduling_validation.spread_errors(spread_constraints, f"{path}.topologySpreadConstraints")
    errors += checks.optional(spec.get("os"), f"{path}.os", _os_errors)
    errors += metadata.label_errors(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    errors += _name_errors(spec, path)
    errors += checks.optional(spec.get("activeDeadlineSeconds"), f"{path}.activeDeadlineSeconds", _deadline_errors)
    errors += checks.each(spec.get("hostAliases"), f"{path}.hostAliases", _alias_errors)
    errors += checks.each(spec.get("tolerations"), f"{path}.tolerations", scheduling_validation.toleration_errors)
    errors += volume_validation.file_key_errors(spec, path)
    if is_template and spec.get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors


_NAME_RULES = {
    "serviceAccountName": names.dns_subdomain_errors,
    "nodeName": names.dns_subdomain_errors,
    "hostname": names.dns_label_errors,
    "subdomain": names.dns_label_errors,
    "priorityClassName": names.dns_subdomain_errors,
    "runtimeClassName": names.dns_subdomain_errors,
    "hostnameOverride": names.dns_subdomain_errors,
}
"""Field of a pod spec with a name -> the rule of the name."""


def _name_errors(spec: Object, path: str) -> list[FieldError]:
    """Field errors of the fields in _NAME_RULES that are set."""
    errors = []
    for field, rule in _NAME_RULES.items():
        if name := spec.get(field):
            errors += checks.well_formed(name, f"{path}.{field}", rule)
    return errors


def _gate_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of scheduling gates and readiness gates of the pod spec at `path`."""
    earlier_names: set[str] = set()
    errors = []
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        name, item_path = gate.get("name", ""), f"{path}.schedulingGates[{index}]"
        errors += checks.well_formed(name, item_path, names.label_key_errors)
        errors += checks.not_repeated(name, item_path, earlier_names)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    for index, gate in enumerate(spec.get("readinessGates") or []):
        item_path = f"{path}.readinessGates[{index}].conditionType"
        errors += checks.well_formed(gate.get("conditionType", ""), item_path, names.label_key_errors)
    return errors


def _os_errors(system: Object, path: str) -> list[FieldError]:
    """Field errors of the operating system of a pod: `linux` or `windows`."""
    name = system.get("name")
    if not name:
        return [required(f"{path}.name")]
    return checks.one_of(name, path, _OPERATING_SYSTEMS)  # at `os` itself, as in kube-apiserver


def _deadline_errors(deadline_s: int, path: str) -> list[FieldError]:
    """The error of an `activeDeadlineSeconds` that is no positive int32."""
    is_valid = 1 <= deadline_s <= _INT32_MAX
    return checks.holds(is_valid, path, deadline_s, f"must be between 1 and {_INT32_MAX}, inclusive")


def _alias_errors(alias: Object, path: str) -> list[FieldError]:
    """Field errors of one of `hostAliases`: its IP address and host names."""
    errors = _address_errors(alias.get("ip", ""), f"{path}.ip")
    for host in alias.get("hostnames") or []:
        errors += checks.well_formed(host, f"{path}.hostnames", names.dns_subdomain_errors)
    return errors


def _dns_config_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of `dnsConfig` at `path`, which the policy `None` requires."""
    dns_config, is_required = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if dns_config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")] if is_required else []
    servers, servers_path = dns_config.get("nameservers") or [], f"{path}.nameservers"
    missing_message = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    errors = checks.present(servers, servers_path, missing_message) if is_required else []
    count_message = f"must not have more than {_NAMESERVERS_MAX} nameservers"
    errors += checks.holds(len(servers) <= _NAMESERVERS_MAX, servers_path, servers, count_message)
    errors += checks.each(servers, servers_path, _address_errors)
    errors += _search_errors(dns_config.get("searches") or [], f"{path}.searches")
    return errors + checks.each(
        dns_config.get("options"),
        f"{path}.options",
        lambda option, item_path: checks.present(option.get("name"), item_path, "must not be empty"),
    )


def _search_errors(searches: list[str], path: str) -> list[FieldError]:
    """Errors of the DNS search domains (`searches`): their number, their length together, the form of each."""
    count_message = f"must not have more than {_SEARCHES_MAX} search paths"
    errors = checks.holds(len(searches) <= _SEARCHES_MAX, path, searches, count_message)
    size_message = (
        f"must not have more than {_SEARCHES_MAX_CHARACTERS} characters (including spaces) in the search list"
    )
    errors += checks.holds(len(" ".join(searches)) <= _SEARCHES_MAX_CHARACTERS, path, searches, size_message)
    domains = [search.removesuffix(".") for search in searches]  # `.` alone, the root, is valid
    return errors + checks.each_well_formed(domains, path, _search_messages)


def _search_messages(domain: str) -> list[str]:
    return [] if not domain or _SEARCH_DOMAIN.fullmatch(domain) else [_SEARCH_MESSAGE]
