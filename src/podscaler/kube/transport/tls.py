"""Builds the TLS contexts of connections to the API server: trusted authorities and client certificate.

`transport.http_transport` builds one for each client certificate, in a thread: OpenSSL reads it from a file.
"""

import re
import ssl

from podscaler.base.errors import UsageError
from podscaler.base.memory_file import MemoryFile
from podscaler.kube.transport.config import Config

CERTIFICATE_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def server_context(config: Config, client_pem: bytes | None) -> ssl.SSLContext:
    """The context of connections to the API server.

    Args:
        config: the trusted authorities.
        client_pem: the client certificate and its key; None if there is no client certificate.

    Raises:
        UsageError: for certificates and keys that cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=config.ca_pem.decode() if config.ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise UsageError(f"{config.origin}: certificate-authority: {error}") from error
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    if client_pem:
        _load_client_certificate(context, client_pem, config.origin)
    return context


def _with_explicit_chain(pem: bytes) -> bytes:
    """A certificate and key in a form with which OpenSSL sends this certificate and no others.

    OpenSSL completes the chain of a single certificate with those it trusts, usually the cluster's authority; the API
    server, which verifies the chain at each request, then checks three signatures instead of one, 0.2 ms more a
    request. Python cannot switch that off, but an explicit chain, even of the certificate itself, is sent unchanged.
    Servers ignore certificates that do not extend the chain (RFC 8446 4.4.2).
    """
    certificates = CERTIFICATE_BLOCK.findall(pem)
    return certificates[0] + b"\n" + pem if len(certificates) == 1 else pem


def _load_client_certificate(context: ssl.SSLContext, pem: bytes, origin: str) -> None:
    """Add a client certificate and its key (PEM) to the context; `origin` is for the message. Raises UsageError."""
    try:
        with MemoryFile(_with_explicit_chain(pem)) as path:
            context.load_cert_chain(path, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"{origin}: client-certificate and client-key cannot be used: {error}") from error
