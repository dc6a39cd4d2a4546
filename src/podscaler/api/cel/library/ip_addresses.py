"""CEL functions on IP addresses and networks: `cidr('10.0.0.0/8').containsIP('10.1.2.3')`.

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions. An IP is
`Opaque("net.IP", address)`, a CIDR `Opaque("net.CIDR", interface)`.

Source: the documentation of Kubernetes' IP and CIDR libraries; messages of Go's net/netip.
"""

import ipaddress

from podscaler.api.cel.library.functions import accepts, table
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import Opaque
from podscaler.api.text import quoting

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_CIDR_ERROR = "network address parse error during conversion from string"


def _parse_ip(ip_text: str) -> Opaque:
    return Opaque("net.IP", _parse_address(ip_text))


def _parse_address(ip_text: str) -> Address:
    """The address of a text. Raises EvaluationError with Go's message; zones and mapped IPv4 addresses are refused."""
    quoted_text = quoting.quoted(ip_text)
    if "%" in ip_text:
        raise EvaluationError(f"IP address {quoted_text} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(ip_text)
    except ValueError:
        reason = f"ParseAddr({quoted_text}): {_address_error(ip_text)}"
        raise EvaluationError(f"IP Address {quoted_text} parse error during conversion from string: {reason}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted_text} is not allowed")
    return address


def _address_error(ip_text: str) -> str:
    """Why net/netip rejects `ip_text`, for the most common errors."""
    if ":" in ip_text:
        return "each colon-separated field must have at least one digit"
    fields = ip_text.split(".")
    if len(fields) == 1:
        return "unable to parse IP"
    for index, field in enumerate(fields):
        if not field and index == 0:
            return "IPv4 field must have at least one digit"
        if not field:
            return f"IPv4 field must have at least one digit (at {quoting.quoted('.'.join(fields[index:]))})"
        if not field.isdigit():
            invalid_part = field.lstrip("0123456789")
            return f"unexpected character (at {quoting.quoted(ip_text[ip_text.index(invalid_part) :])})"
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if int(field) > 255:
            return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _parse_cidr(cidr_text: str) -> Opaque:
    """The network of a text, with the address in it. Raises EvaluationError with Go's message."""
    quoted_text = quoting.quoted(cidr_text)
    reason = _cidr_error(cidr_text)
    if reason:
        # the prefix stands twice: upstream's parser and its caller both add it
        raise EvaluationError(f"{_CIDR_ERROR}: {_CIDR_ERROR}: netip.ParsePrefix({quoted_text}): {reason}")
    interface = ipaddress.ip_interface(cidr_text)
    if isinstance(interface.ip, ipaddress.IPv6Address) and interface.ip.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted_text} is not allowed")
    return Opaque("net.CIDR", interface)


def _cidr_error(cidr_text: str) -> str:
    """Why net/netip rejects `cidr_text`; empty if it does not."""
    address, slash, prefix_length = cidr_text.partition("/")
    if not slash:
        return "no '/'"
    has_leading_zero = len(prefix_length) > 1 and prefix_length[0] == "0"
    if has_leading_zero or not prefix_length.isdigit():
        return f"bad bits after slash: {quoting.quoted(prefix_length)}"
    try:
        ipaddress.ip_interface(cidr_text)
    except ValueError:
        return _prefix_error(address)
    return ""


def _prefix_error(address: str) -> str:
    """Why net/netip rejects a CIDR with this address: for the address, or for the length of the prefix."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return f"ParseAddr({quoting.quoted(address)}): {_address_error(address)}"
    return "prefix length out of range"


def _contains_ip(cidr: Opaque, ip: Opaque | str) -> bool:
    address = _parse_address(ip) if isinstance(ip, str) else ip.value
    return address.version == cidr.value.version and address in cidr.value.network


def _contains_cidr(cidr: Opaque, other_cidr: Opaque | str) -> bool:
    """Whether a network contains all addresses of another one."""
    inner: Interface = (_parse_cidr(other_cidr) if isinstance(other_cidr, str) else other_cidr).value
    outer: Interface = cidr.value
    if inner.version != outer.version or inner.network.prefixlen < outer.network.prefixlen:
        return False
    return inner.ip in outer.network


def _is_global_unicast(ip: Opaque) -> bool:
    """Whether an address is none of the special ones that Go's IsGlobalUnicast excludes."""
    address: Address = ip.value
    is_broadcast = isinstance(address, ipaddress.IPv4Address) and address == ipaddress.IPv4Address("255.255.255.255")
    is_special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (is_special or is_broadcast)


def _is_link_local_multicast(ip: Opaque) -> bool:
    """Whether an address is in 224.0.0.0/24 (IPv4) or in ff02::/16 with any flags (IPv6)."""
    address: Address = ip.value
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


FUNCTIONS = table(
    {
        "ip(string) -> IP": _parse_ip,
        "isIP(string) -> bool": accepts(_parse_address),
        ":ip.isCanonical(string) -> bool": lambda text: str(_parse_address(text)) == text,
        "IP.family() -> int": lambda ip: ip.value.version,
        "IP.isUnspecified() -> bool": lambda ip: ip.value.is_unspecified,
        "IP.isLoopback() -> bool": lambda ip: ip.value.is_loopback,
        "IP.isLinkLocalMulticast() -> bool": _is_link_local_multicast,
        "IP.isLinkLocalUnicast() -> bool": lambda ip: ip.value.is_link_local,
        "IP.isGlobalUnicast() -> bool": _is_global_unicast,
        "string(IP) -> string": lambda ip: str(ip.value),
        "cidr(string) -> CIDR": _parse_cidr,
        "isCIDR(string) -> bool": accepts(_parse_cidr),
        "CIDR.containsIP(string) -> bool": _contains_ip,
        "CIDR.containsIP(IP) -> bool": _contains_ip,
        "CIDR.containsCIDR(string) -> bool": _contains_cidr,
        "CIDR.containsCIDR(CIDR) -> bool": _contains_cidr,
        "CIDR.ip() -> IP": lambda cidr: Opaque("net.IP", cidr.value.ip),
        "CIDR.prefixLength() -> int": lambda cidr: cidr.value.network.prefixlen,
        "CIDR.masked() -> CIDR": lambda cidr: Opaque("net.CIDR", ipaddress.ip_interface(cidr.value.network)),
        "string(CIDR) -> string": lambda cidr: str(cidr.value),
    }
)
