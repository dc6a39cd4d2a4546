"""Makes TLS contexts for the connections of metric sources, and parses and formats addresses such as `redis:6379`.

Called by the modules of systems. They call `context_of` in their factory, which runs in a thread, as loading
authorities takes milliseconds.
"""

import re
import ssl

from podscaler.sources.protocol import InvalidSource, TLSSettings

_HOST = re.compile(r"[A-Za-z0-9._:%-]+").fullmatch


def context_of(tls: TLSSettings) -> ssl.SSLContext:
    """The context of a client with these settings. Raises InvalidSource for authorities that cannot be loaded."""
    context = ssl.create_default_context()
    if tls.authorities_pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=tls.authorities_pem)
        except ssl.SSLError:
            raise InvalidSource("tls.caBundle has no certificates in PEM") from None
    if not tls.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 address loses its brackets. Raises InvalidSource."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not _HOST(host) or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise InvalidSource(f"the address {address} is not host:port")
    return host, int(port)


def host_port(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
