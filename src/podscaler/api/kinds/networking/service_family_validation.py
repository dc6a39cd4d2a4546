"""Validates the cluster IPs, IP families and family policy of a Service, and sets the default families.

Called by `api.kinds.networking.service` (defaults) and by `service_validation`. The cluster has IPv4 only; headless
Services without selector may name IPv6. A cluster with IPv6 would need changes in `cluster_support_errors` and
`set_defaults`. `spec` is that of a Service, as a JSON object.

Source: kube-apiserver's messages: the validation of clusterIPs and ipFamilies, and the allocators of addresses.
"""

from collections.abc import Sequence

from podscaler.api.machinery import ip_addresses
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ADDRESSES_MAX = 2
_CLUSTER_IPS_PATH, _POLICY_PATH = "spec.clusterIPs", "spec.ipFamilyPolicy"


def spec_errors(spec: Object) -> list[FieldError]:
    """The field errors of addresses, families and policy of a Service that is no ExternalName, on any cluster."""
    cluster_ips: list[str] = spec.get("clusterIPs") or []
    errors = _link_errors(spec.get("clusterIP", ""), cluster_ips) + _family_errors(spec)
    address_errors = _address_errors(cluster_ips)
    if address_errors:
        return errors + address_errors
    errors += checks.holds(
        len(cluster_ips) <= _ADDRESSES_MAX, _CLUSTER_IPS_PATH, cluster_ips, "may only hold up to 2 values"
    )
    if len(cluster_ips) > 1 and len({_ip_family(ip) for ip in cluster_ips}) == 1:
        errors.append(invalid(_CLUSTER_IPS_PATH, cluster_ips, "may specify no more than one IP for each IP family"))
    return errors + _match_errors(cluster_ips, spec.get("ipFamilies") or [])


def _link_errors(cluster_ip: str, cluster_ips: Sequence[str]) -> list[FieldError]:
    """The error of a `clusterIP` that is not the first of `clusterIPs`."""
    if cluster_ips and not cluster_ip:
        return [invalid(_CLUSTER_IPS_PATH, cluster_ips, "must be empty when `clusterIP` is not specified")]
    if cluster_ips and cluster_ip != cluster_ips[0]:
        return [invalid(_CLUSTER_IPS_PATH, cluster_ips, "first value must match `clusterIP`")]
    return []


def _family_errors(spec: Object) -> list[FieldError]:
    """Errors of the IP families and of their policy."""
    earlier_families: set[str] = set()
    errors = checks.each(
        spec.get("ipFamilies"),
        "spec.ipFamilies",
        lambda family, item_path: (
            checks.one_of(family, item_path, _FAMILIES) + checks.not_repeated(family, item_path, earlier_families)
        ),
    )
    return errors + checks.optional_one_of(spec.get("ipFamilyPolicy"), _POLICY_PATH, _FAMILY_POLICIES)


def _address_errors(cluster_ips: Sequence[str]) -> list[FieldError]:
    """Errors of the cluster IPs: addresses, or `None` alone for a headless Service."""
    if cluster_ips[:1] == ["None"]:
        return checks.holds(
            len(cluster_ips) == 1, _CLUSTER_IPS_PATH, cluster_ips, "'None' must be the first and only value"
        )
    return checks.each(
        cluster_ips,
        _CLUSTER_IPS_PATH,
        lambda address, item_path: checks.holds(
            ip_addresses.find_address(address), item_path, address, ip_addresses.INVALID_MESSAGE
        ),
    )


def _match_errors(cluster_ips: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    """Errors of cluster IPs that are not of the family at the same position, where both are set."""
    errors = []
    for index, (ip, family) in enumerate(zip(cluster_ips, families, strict=False)):
        if ip != "None" and family in _FAMILIES and _ip_family(ip) != family:
            message = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{_CLUSTER_IPS_PATH}[{index}]", ip, message))
    return errors


def cluster_support_errors(spec: Object) -> list[FieldError]:
    """The reasons why this cluster, which has IPv4 only, cannot allocate the addresses of a valid Service."""
    cluster_ips, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    errors = _single_stack_errors(spec, cluster_ips, families)
    for index, ip in enumerate(cluster_ips):
        if index >= len(families) and _ip_family(ip) == "IPv6":  # those in `families` are reported below
            errors.append(
                invalid(f"{_CLUSTER_IPS_PATH}[{index}]", cluster_ips, "IPv6 is not configured on this cluster")
            )
    is_unmanaged = cluster_ips[:1] == ["None"] and not spec.get("selector")  # needs no addresses of the cluster
    if errors or is_unmanaged:
        return errors
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        errors.append(
            invalid(_POLICY_PATH, "RequireDualStack", "this cluster is not configured for dual-stack services")
        )
    ipv6_indexes = [index for index, family in enumerate(families) if family == "IPv6"]
    return errors + [
        invalid(f"spec.ipFamilies[{index}]", "IPv6", "not configured on this cluster") for index in ipv6_indexes
    ]


def _single_stack_errors(spec: Object, cluster_ips: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    """Field errors of several addresses or families in a Service whose family policy is SingleStack."""
    if spec.get("ipFamilyPolicy") != "SingleStack":
        return []
    checked_fields = [("cluster IPs", cluster_ips), ("IP families", families)]
    message_format = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    return [
        invalid(_POLICY_PATH, "SingleStack", message_format.format(noun))
        for noun, values in checked_fields
        if len(values) > 1
    ]


def _ip_family(address: str) -> str:
    """The family of an address; IPv4 for `None`, the cluster IP of a headless Service, as the cluster has IPv4."""
    return "IPv6" if ":" in address else "IPv4"


def set_defaults(spec: Object) -> None:
    """The default families and policy, in place: one IPv4 address.

    A headless Service without selector has both families: its endpoints are written by clients.
    """
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        families = list(spec.get("ipFamilies") or ["IPv4"])
        other_families = [] if policy == "SingleStack" else [family for family in _FAMILIES if family not in families]
        spec["ipFamilies"] = families + other_families
        return
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if all(_ip_family(ip) == "IPv4" for ip in spec.get("clusterIPs") or ()):  # others are field errors
        spec.setdefault("ipFamilies", ["IPv4"])
