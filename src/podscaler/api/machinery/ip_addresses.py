"""Validates IP addresses (`10.1.2.3`) and networks (`10.0.0.0/8`) in fields of API objects.

Called by the validation of pods, services, network policies and endpoint slices. Functions that return errors return
kube-apiserver's messages, without a path; `resource.checks` makes field errors of them. A `find_*` function returns
None for an invalid text.

Source: kube-apiserver's messages; the standard library's `ipaddress`.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface, ip_network

INVALID_MESSAGE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
LOOPBACK_MESSAGE = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_NETWORK_MESSAGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LOCAL_MULTICAST = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))  # kube-apiserver's message says ff02::/10
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=\d)")
"""The `0` of `10.01.2.3` and of `10.0.0.0/08`."""


def find_address(address_text: str) -> IPv4Address | IPv6Address | None:
    """The parsed address; None where `address_text` is no IP address."""
    try:
        return ip_address(address_text)
    except ValueError:
        return None


def without_leading_zeros(address_text: str) -> str:
    """The text without leading zeros in IPv4 octets, which kube-apiserver ignores: `010.0.0.1` is `10.0.0.1`."""
    head, colon, tail = address_text.rpartition(":")
    return f"{head}{colon}{_LEADING_ZEROS.sub('', tail)}" if "." in tail else address_text


def endpoint_errors(address_text: str) -> list[str]:
    """The messages about the address of an endpoint: it is invalid, or in a range that no endpoint may have."""
    address = find_address(address_text)
    if address is None:
        return [INVALID_MESSAGE]
    messages = [f"may not be unspecified ({address_text})"] if address.is_unspecified else []
    if address.is_loopback:
        messages.append(LOOPBACK_MESSAGE)
    if address.is_link_local:
        messages.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if any(address.version == network.version and address in network for network in _LOCAL_MULTICAST):
        messages.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return messages


def find_network(network_text: str) -> IPv4Network | IPv6Network | None:
    """The parsed network; None where `network_text` is none. Bits beyond the prefix and leading zeros are ignored."""
    if "/" not in network_text:
        return None
    try:
        return ip_interface(_LEADING_ZEROS.sub("", network_text)).network
    except ValueError:
        return None


def is_subnet(subnet: IPv4Network | IPv6Network, network: IPv4Network | IPv6Network) -> bool:
    """Whether `subnet` is a proper subnet of `network`."""
    return (
        subnet.version == network.version and subnet.prefixlen > network.prefixlen and subnet.network_address in network
    )


def network_errors(network_text: str) -> list[str]:
    """The messages about `network_text` as a network (`10.0.0.0/8`)."""
    network = find_network(network_text)
    if network is None:
        return [_NETWORK_MESSAGE]
    if _LEADING_ZEROS.search(network_text):
        return ["must not have leading 0s in IP or prefix length"]
    address = ip_interface(network_text).ip
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    return [] if address == network.network_address else ["must not have bits set beyond the prefix length"]
