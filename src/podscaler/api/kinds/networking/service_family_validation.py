"""What is wrong with the addresses of a Service and their families: in themselves, together, and in this cluster.

Called by `service_validation`. This is a cluster of IPv4; only Services without address and selector may name IPv6.

Source: upstream's messages: its validation of clusterIPs and what belongs to them, and its allocators.
"""

from collections.abc import Sequence

from podscaler.api.machinery import addresses
from podscaler.api.machinery.field import FieldError, duplicate, invalid, not_supported
from podscaler.api.resource.resources import Object

_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ADDRESSES_MAX = 2
_IPS, _POLICY = "spec.clusterIPs", "spec.ipFamilyPolicy"


def related_faults(spec: Object) -> list[FieldError]:
    """What is wrong in itself with addresses, families and policy of a Service that is no ExternalName."""
    given: list[str] = spec.get("clusterIPs") or []
    found = _link_faults(spec.get("clusterIP", ""), given) + _name_faults(spec)
    bad = _address_faults(given)
    if bad:
        return found + bad
    if len(given) > _ADDRESSES_MAX:
        found.append(invalid(_IPS, given, "may only hold up to 2 values"))
    if len(given) > 1 and len({_family(each) for each in given}) == 1:
        found.append(invalid(_IPS, given, "may specify no more than one IP for each IP family"))
    return found + _match_faults(given, spec.get("ipFamilies") or [])


def _link_faults(address: str, given: Sequence[str]) -> list[FieldError]:
    if given and not address:
        return [invalid(_IPS, given, "must be empty when `clusterIP` is not specified")]
    if given and address != given[0]:
        return [invalid(_IPS, given, "first value must match `clusterIP`")]
    return []


def _name_faults(spec: Object) -> list[FieldError]:
    found, families = [], spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            found.append(not_supported(path, family, _FAMILIES))
        if family in families[:index]:
            found.append(duplicate(path, family))
    policy = spec.get("ipFamilyPolicy")
    return found if policy in (None, *_POLICIES) else [*found, not_supported(_POLICY, policy, _POLICIES)]


def _address_faults(given: Sequence[str]) -> list[FieldError]:
    if given[:1] == ["None"]:
        return [invalid(_IPS, given, "'None' must be the first and only value")] if len(given) > 1 else []
    bad = [(index, each) for index, each in enumerate(given) if addresses.find(each) is None]
    return [invalid(f"{_IPS}[{index}]", each, addresses.FAULT) for index, each in bad]


def _match_faults(given: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    found = []
    for index, (each, family) in enumerate(zip(given, families, strict=False)):
        if each != "None" and family in _FAMILIES and _family(each) != family:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            found.append(invalid(f"{_IPS}[{index}]", each, text))
    return found


def cluster_faults(spec: Object) -> list[FieldError]:
    """Why a Service that is right in itself cannot have the addresses that it asks for."""
    given, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    found = _single_faults(spec, given, families)
    for index, each in enumerate(given):
        if index >= len(families) and _family(each) == "IPv6":
            found.append(invalid(f"{_IPS}[{index}]", given, "IPv6 is not configured on this cluster"))
    if found or (given[:1] == ["None"] and not spec.get("selector")):
        return found
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        found.append(invalid(_POLICY, "RequireDualStack", "this cluster is not configured for dual-stack services"))
    unknown = [index for index, family in enumerate(families) if family == "IPv6"]
    return found + [invalid(f"spec.ipFamilies[{index}]", "IPv6", "not configured on this cluster") for index in unknown]


def _single_faults(spec: Object, given: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    if spec.get("ipFamilyPolicy") != "SingleStack":
        return []
    several = [("cluster IPs", given), ("IP families", families)]
    text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    return [invalid(_POLICY, "SingleStack", text.format(what)) for what, listed in several if len(listed) > 1]


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def fill(spec: Object) -> None:
    """The families and the policy that a Service has which names none, in place: one IPv4 address.

    Endpoints that someone else keeps for a Service without address and selector may have addresses of both families.
    """
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        families = list(spec.get("ipFamilies") or _FAMILIES[:1])
        others = [] if policy == "SingleStack" else [each for each in _FAMILIES if each not in families]
        spec["ipFamilies"] = families + others
        return
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if all(_family(each) == "IPv4" for each in spec.get("clusterIPs") or ()):  # others are faults, which are told
        spec.setdefault("ipFamilies", ["IPv4"])
