"""Validates the cluster IPs, IP families and family policy of a Service, and sets the default families.

Called by the record of Service and by `service_validation`. The cluster has IPv4 only; Services without address and
selector may name IPv6.

Source: kube-apiserver's messages: the validation of clusterIPs and ipFamilies, and the allocators of addresses.
"""

from collections.abc import Sequence

from podscaler.api.machinery import ip_addresses
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ADDRESSES_MAX = 2
_IPS, _POLICY = "spec.clusterIPs", "spec.ipFamilyPolicy"


def related_errors(spec: Object) -> list[FieldError]:
    """The field errors of addresses, families and policy of a Service that is no ExternalName."""
    given: list[str] = spec.get("clusterIPs") or []
    found = _link_errors(spec.get("clusterIP", ""), given) + _name_errors(spec)
    bad = _address_errors(given)
    if bad:
        return found + bad
    found += checks.holds(len(given) <= _ADDRESSES_MAX, _IPS, given, "may only hold up to 2 values")
    if len(given) > 1 and len({_family(each) for each in given}) == 1:
        found.append(invalid(_IPS, given, "may specify no more than one IP for each IP family"))
    return found + _match_errors(given, spec.get("ipFamilies") or [])


def _link_errors(address: str, given: Sequence[str]) -> list[FieldError]:
    if given and not address:
        return [invalid(_IPS, given, "must be empty when `clusterIP` is not specified")]
    if given and address != given[0]:
        return [invalid(_IPS, given, "first value must match `clusterIP`")]
    return []


def _name_errors(spec: Object) -> list[FieldError]:
    seen: set[str] = set()
    found = checks.each(
        spec.get("ipFamilies"),
        "spec.ipFamilies",
        lambda family, at: checks.one_of(family, at, _FAMILIES) + checks.not_repeated(family, at, seen),
    )
    return found + checks.optional_one_of(spec.get("ipFamilyPolicy"), _POLICY, _POLICIES)


def _address_errors(given: Sequence[str]) -> list[FieldError]:
    if given[:1] == ["None"]:
        return checks.holds(len(given) == 1, _IPS, given, "'None' must be the first and only value")
    return checks.each(
        given, _IPS, lambda each, at: checks.holds(ip_addresses.find(each), at, each, ip_addresses.INVALID_MESSAGE)
    )


def _match_errors(given: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    found = []
    for index, (each, family) in enumerate(zip(given, families, strict=False)):
        if each != "None" and family in _FAMILIES and _family(each) != family:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            found.append(invalid(f"{_IPS}[{index}]", each, text))
    return found


def cluster_errors(spec: Object) -> list[FieldError]:
    """The reasons why this cluster cannot allocate the addresses of a valid Service."""
    given, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    found = _single_errors(spec, given, families)
    for index, each in enumerate(given):
        if index >= len(families) and _family(each) == "IPv6":
            found.append(invalid(f"{_IPS}[{index}]", given, "IPv6 is not configured on this cluster"))
    if found or (given[:1] == ["None"] and not spec.get("selector")):
        return found
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        found.append(invalid(_POLICY, "RequireDualStack", "this cluster is not configured for dual-stack services"))
    unknown = [index for index, family in enumerate(families) if family == "IPv6"]
    return found + [invalid(f"spec.ipFamilies[{index}]", "IPv6", "not configured on this cluster") for index in unknown]


def _single_errors(spec: Object, given: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    if spec.get("ipFamilyPolicy") != "SingleStack":
        return []
    several = [("cluster IPs", given), ("IP families", families)]
    text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    return [invalid(_POLICY, "SingleStack", text.format(what)) for what, listed in several if len(listed) > 1]


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def set_defaults(spec: Object) -> None:
    """The default families and policy, in place: one IPv4 address.

    A headless Service without selector has both families: its endpoints are written by clients.
    """
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        families = list(spec.get("ipFamilies") or _FAMILIES[:1])
        others = [] if policy == "SingleStack" else [each for each in _FAMILIES if each not in families]
        spec["ipFamilies"] = families + others
        return
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if all(_family(each) == "IPv4" for each in spec.get("clusterIPs") or ()):  # others are field errors
        spec.setdefault("ipFamilies", ["IPv4"])
