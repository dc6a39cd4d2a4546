"""CEL functions on IP addresses and networks: `cidr('10.0.0.0/8').containsIP('10.1.2.3')`.

`environment` puts FUNCTIONS, at the end, into the table of all functions. An IP is `Opaque("net.IP", address)`, a CIDR
`Opaque("net.CIDR", interface)`.

Source: the documentation of Kubernetes' IP and CIDR libraries; messages of Go's net/netip.
"""

import ipaddress

from podscaler.api.cel.library.functions import is_valid, table
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import Opaque
from podscaler.api.text import quoting

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_CIDR_ERROR = "network address parse error during conversion from string"


def _ip(text: str) -> Opaque:
    return Opaque("net.IP", _address(text))


def _address(text: str) -> Address:
    """The address of a text. Raises EvaluationError with Go's message; zones and mapped IPv4 addresses are refused."""
    quoted_text = quoting.quoted(text)
    if "%" in text:
        raise EvaluationError(f"IP address {quoted_text} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        reason = f"ParseAddr({quoted_text}): {_address_error(text)}"
        raise EvaluationError(f"IP Address {quoted_text} parse error during conversion from string: {reason}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted_text} is not allowed")
    return address


def _address_error(text: str) -> str:
    """Why net/netip rejects `text`, for the most common errors."""
    if ":" in text:
        return "each colon-separated field must have at least one digit"
    fields = text.split(".")
    if len(fields) == 1:
        return "unable to parse IP"
    for index, field in enumerate(fields):
        rest = quoting.quoted(".".join(fields[index:]))
        if not field:
            return (
                f"IPv4 field must have at least one digit (at {rest})"
                if index
                else "IPv4 field must have at least one digit"
            )
        if not field.isdigit():
            return "unexpected character (at " + quoting.quoted(text[text.index(field.lstrip("0123456789")) :]) + ")"
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if int(field) > 255:
            return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _cidr(text: str) -> Opaque:
    """The network of a text, with the address in it. Raises EvaluationError with Go's message."""
    quoted_text = quoting.quoted(text)
    address, slash, bits = text.partition("/")
    reason = "" if slash else "no '/'"
    if slash and (not bits.isdigit() or (len(bits) > 1 and bits[0] == "0")):
        reason = f"bad bits after slash: {quoting.quoted(bits)}"
    try:
        interface = ipaddress.ip_interface(text) if not reason else None
    except ValueError:
        reason = _prefix_error(address)
    if reason or interface is None:
        raise EvaluationError(f"{_CIDR_ERROR}: {_CIDR_ERROR}: netip.ParsePrefix({quoted_text}): {reason}")
    if isinstance(interface.ip, ipaddress.IPv6Address) and interface.ip.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted_text} is not allowed")
    return Opaque("net.CIDR", interface)


def _prefix_error(address: str) -> str:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return f"ParseAddr({quoting.quoted(address)}): {_address_error(address)}"
    return "prefix length out of range"


def _contains_ip(cidr: Opaque, ip: Opaque | str) -> bool:
    address = _address(ip) if isinstance(ip, str) else ip.value
    return address.version == cidr.value.version and address in cidr.value.network


def _contains_cidr(cidr: Opaque, other: Opaque | str) -> bool:
    inner: Interface = (_cidr(other) if isinstance(other, str) else other).value
    outer: Interface = cidr.value
    if inner.version != outer.version or inner.network.prefixlen < outer.network.prefixlen:
        return False
    return inner.ip in outer.network


def _is_global_unicast(ip: Opaque) -> bool:
    address: Address = ip.value
    is_broadcast = isinstance(address, ipaddress.IPv4Address) and address == ipaddress.IPv4Address("255.255.255.255")
    other = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (other or is_broadcast)


def _is_link_local_multicast(ip: Opaque) -> bool:
    address: Address = ip.value
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


FUNCTIONS = table(
    {
        "ip(string) -> IP": _ip,
        "isIP(string) -> bool": is_valid(_address),
        ":ip.isCanonical(string) -> bool": lambda text: str(_address(text)) == text,
        "IP.family() -> int": lambda ip: ip.value.version,
        "IP.isUnspecified() -> bool": lambda ip: ip.value.is_unspecified,
        "IP.isLoopback() -> bool": lambda ip: ip.value.is_loopback,
        "IP.isLinkLocalMulticast() -> bool": _is_link_local_multicast,
        "IP.isLinkLocalUnicast() -> bool": lambda ip: ip.value.is_link_local,
        "IP.isGlobalUnicast() -> bool": _is_global_unicast,
        "string(IP) -> string": lambda ip: str(ip.value),
        "cidr(string) -> CIDR": _cidr,
        "isCIDR(string) -> bool": is_valid(_cidr),
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
