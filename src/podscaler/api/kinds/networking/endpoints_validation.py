"""What is wrong with Endpoints, and what is odd about their addresses.

Called by the record of Endpoints. Source: upstream's messages, as recorded. Differs: what the control plane itself
writes may name loopback addresses, because here pods and API server have no others.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

from podscaler.api.machinery import addresses, names, ports
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource.resources import Object

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
_API_SERVER = ("default", "kubernetes")
_LISTS = ("addresses", "notReadyAddresses")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with Endpoints to be stored; subsets that were stored before may stay as they are."""
    subsets = new.get("subsets") or []
    if old is not None and subsets == (old.get("subsets") or []):
        return []
    found = [fault for index, subset in enumerate(subsets) for fault in _subset_faults(subset, f"subsets[{index}]")]
    return [fault for fault in found if addresses.LOOPBACK_FAULT not in fault.text] if _is_own(new) else found


def _is_own(endpoints: Object) -> bool:
    """Whether the control plane wrote it."""
    metadata = endpoints["metadata"]
    named = (metadata.get("namespace", ""), metadata.get("name", "")) == _API_SERVER
    return named or (metadata.get("labels") or {}).get(MANAGED_BY) == MANAGER


def warnings(new: Object, old: Object | None) -> list[str]:
    """Addresses of IPv6 that are not written in the canonical form."""
    del old
    found = []
    for index, subset in enumerate(new.get("subsets") or []):
        for field in _LISTS:
            for number, address in enumerate(subset.get(field) or []):
                found += _notation_warnings(address.get("ip", ""), f"subsets[{index}].{field}[{number}].ip")
    return found


def _notation_warnings(ip: str, path: str) -> list[str]:
    address = addresses.find(ip)
    if address is None or address.version == 4 or str(address) == ip:
        return []
    return [f'{path}: IPv6 address "{ip}" should be in RFC 5952 canonical format ("{address}")']


def _subset_faults(subset: Object, path: str) -> list[FieldError]:
    found = []
    if not any(subset.get(field) for field in _LISTS):
        found.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in _LISTS:
        for index, address in enumerate(subset.get(field) or []):
            found += _address_faults(address, f"{path}.{field}[{index}]")
    listed = subset.get("ports") or []
    for index, port in enumerate(listed):
        found += _port_faults(port, f"{path}.ports[{index}]", is_alone=len(listed) == 1)
    return found


def _address_faults(address: Object, path: str) -> list[FieldError]:
    ip, hostname, node = address.get("ip", ""), address.get("hostname", ""), address.get("nodeName")
    found = [invalid(f"{path}.ip", ip, text) for text in _notation_faults(ip)]
    if hostname:
        found += [invalid(f"{path}.hostname", hostname, text) for text in names.dns_label_faults(hostname)]
    if node is not None:
        found += [invalid(f"{path}.nodeName", node, text) for text in names.dns_subdomain_faults(node)]
    return found + [invalid(f"{path}.ip", ip, text) for text in _place_faults(ip)]


@lru_cache(maxsize=8192)
def _notation_faults(ip: str) -> tuple[str, ...]:
    """What is wrong with how the address is written; kept, as large objects are written often, and change little."""
    plain = addresses.without_leading_zeros(ip)
    address = _find(plain)
    if address is None:
        return (addresses.FAULT,)
    if plain != ip:
        return ("must not have leading 0s",)
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    return ("must not be an IPv4-mapped IPv6 address",) if is_mapped else ()


@lru_cache(maxsize=8192)
def _place_faults(ip: str) -> tuple[str, ...]:
    """What forbids the address as one that others reach, judged apart from how it is written."""
    address = _find(addresses.without_leading_zeros(ip))
    if address is None:
        return ("must be a valid IP address",)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return tuple(addresses.faults(str(mapped or address)))


def _find(ip: str) -> IPv4Address | IPv6Address | None:
    """The address, without a zone, which Python allows and upstream does not."""
    return None if "%" in ip else addresses.find(ip)


def _port_faults(port: Object, path: str, *, is_alone: bool) -> list[FieldError]:
    name, protocol = port.get("name", ""), port.get("appProtocol")
    found = []
    if name:
        found += [invalid(f"{path}.name", name, text) for text in names.dns_label_faults(name)]
    elif not is_alone:
        found.append(required(f"{path}.name"))
    found += ports.number_faults(port.get("port", 0), f"{path}.port")
    found += ports.protocol_faults(port.get("protocol", ""), f"{path}.protocol")
    if protocol is not None:
        found += [invalid(f"{path}.appProtocol", protocol, text) for text in names.label_key_faults(protocol)]
    return found
