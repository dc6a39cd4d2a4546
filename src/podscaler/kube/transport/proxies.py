"""Finds the proxy of a server in the environment, and checks proxies' URLs.

`config.kubeconfig` and `config.locate` call it; `transport.dialing` connects through the proxy. `proxy-url` of a
kubeconfig takes precedence over the environment.

Source: Go's golang.org/x/net/http/httpproxy (documentation), which client-go uses.
"""

import ipaddress
import os
from urllib.parse import SplitResult, urlsplit

from podscaler.base.errors import UsageError

SCHEMES = ("http", "https", "socks5", "socks5h")
DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def parse(address: str) -> str:
    """The proxy's URL; an address without a scheme gets `http://`. Raises ValueError for one that cannot be used."""
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f'"{redacted(address)}" is not an http://, https:// or socks5:// address')
    if not parts.hostname or _has_bad_port(parts):
        raise ValueError(f'"{redacted(address)}" names no host or no usable port')
    return url


def redacted(url: str) -> str:
    """The URL without its password, for messages."""
    scheme_end = url.find("://")
    scheme, address = ("", url) if scheme_end < 0 else (url[: scheme_end + 3], url[scheme_end + 3 :])
    user, separator, host = address.rpartition("@")
    return f"{scheme}{user.partition(':')[0]}:xxxxx@{host}" if separator and ":" in user else url


def from_environment(server: str) -> str | None:
    """The proxy for the URL `server` by HTTPS_PROXY, HTTP_PROXY and NO_PROXY; None if the server is reached directly.

    Loopback addresses and localhost never have a proxy. Raises UsageError for a bad URL.
    """
    parts = urlsplit(server)
    variable_name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy_address = _variable(variable_name)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    if not proxy_address or _is_exempt(host, port):
        return None
    try:
        return parse(proxy_address)
    except ValueError as error:
        raise UsageError(f"the environment's {variable_name}: {error}") from error


def _variable(name: str) -> str:
    """The environment's value of a variable, in upper or lower case; empty if neither is set."""
    return os.environ.get(name) or os.environ.get(name.lower()) or ""


def _is_exempt(host: str, port: int) -> bool:
    """Whether a host needs no proxy: it is this machine, or an entry of NO_PROXY covers it."""
    address = _find_ip_address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in _variable("NO_PROXY").split(","))
    return any(_covers(entry, host, port, address) for entry in entries if entry)


def _covers(entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    """Whether an entry of NO_PROXY exempts a host; `address` is the host's, None if it is a name.

    An entry is `*`, a network (`10.0.0.0/8`), an address, a domain with its subdomains (`example.com`), or only the
    subdomains (`.example.com`, `*.example.com`); with `:PORT` it exempts one port.
    """
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _in_network(entry, address)
    name, entry_port = _split_port(entry)
    if entry_port and entry_port != str(port):
        return False
    if address is not None:
        return _find_ip_address(name) == address
    if name.startswith("*."):
        name = name[1:]
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _in_network(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether the address is in the network `entry`; False if that is no valid network."""
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _split_port(entry: str) -> tuple[str, str]:
    """Host and port of an entry; the port is empty if it has none. `[::1]:80` and `::1` are IPv6 addresses."""
    if entry.startswith("["):
        name, _, port_text = entry[1:].partition("]")
        return name, port_text.removeprefix(":")
    if entry.count(":") != 1:
        return entry, ""
    name, _, port = entry.partition(":")
    return name, port


def _find_ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address in a host; None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _has_bad_port(parts: SplitResult) -> bool:
    """Whether the URL has the port 0, or one that is no number of a port."""
    try:
        return parts.port == 0
    except ValueError:
        return True
