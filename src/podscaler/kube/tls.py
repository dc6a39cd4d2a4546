"""TLS contexts: what to trust and what to show.

`kube.http_transport` builds one for each client certificate, in a thread: the certificate passes through a file.
"""

import os
import ssl
import tempfile

from podscaler.errors import UsageError
from podscaler.kube.config import Config


def server_context(config: Config, client_pem: bytes | None) -> ssl.SSLContext:
    """For connections to the API server; touches files.

    Args:
        config: what to trust.
        client_pem: our certificate and its key; None: none.

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


def _load_client_certificate(context: ssl.SSLContext, pem: bytes, origin: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix="podscaler-")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"{origin}: client-certificate and client-key cannot be used: {error}") from error
    finally:
        os.unlink(name)
