"""Provides the TLS certificate of podscaler's HTTPS servers, read again from its files every minute, or made in memory.

`podscaler controller` and `podscaler adapter` make a ServingCertificate from --tls-cert-file and
--tls-private-key-file; without these files the adapter uses `self_signed_context`.

Source: the flags of these names of kube-controller-manager and of extension API servers.
"""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podscaler.base.certificate_pair import PERIOD_S, CertificatePair
from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.base.memory_file import MemoryFile

log = logging.getLogger(__name__)

SELF_SIGNED_LIFE = timedelta(days=365)
COMMON_NAME_MAX = 64
"""The longest common name of X.509."""


class ServingCertificate:
    """A serving certificate from two files; reads them when it is made, which blocks.

    Servers use `context`, which later certificates are loaded into.

    Args:
        certificate, key: the files, in PEM; the first with its intermediates.

    Raises:
        UsageError: the files cannot be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._pair = CertificatePair(certificate, key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._pair.read_again()
            self._pair.load_into(self.context)
        except (OSError, ValueError) as error:
            raise UsageError(f"--tls-cert-file {certificate}, --tls-private-key-file {key}: {_cause(error)}") from error

    async def follow(self, clock: Clock) -> None:
        """Use renewed files for new connections, until cancelled."""
        while True:
            await clock.sleep(PERIOD_S)
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Use the files if they hold another pair than before. The call blocks."""
        certificate = self._pair.certificate
        try:
            if self._pair.read_again():
                self._pair.load_into(self.context)
                log.info("the serving certificate %s was renewed", certificate)
        except (OSError, ValueError) as error:
            log.warning("the serving certificate %s: %s; the last one stays in use", certificate, _cause(error))


def _cause(error: Exception) -> str:
    """Why the certificate could not be loaded, for the error message."""
    if isinstance(error, ssl.SSLError):
        return "not a certificate in PEM with its key"
    return str(error.strerror if isinstance(error, OSError) else error)


def self_signed_context(names: Sequence[str]) -> ssl.SSLContext:
    """A context with a new certificate for host `names`, of which there is one at least; the key is never on a disk.

    The call blocks.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:COMMON_NAME_MAX])])
    utc_now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(utc_now - timedelta(hours=1)).not_valid_after(utc_now + SELF_SIGNED_LIFE)
    names_extension = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    certificate = builder.add_extension(names_extension, critical=False).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    pem += certificate.public_bytes(serialization.Encoding.PEM)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with MemoryFile(pem) as path:
        context.load_cert_chain(path)
    return context
