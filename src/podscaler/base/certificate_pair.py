"""A TLS certificate and its key in two files that another program renews.

The client of API servers (`podscaler.kube.config.certificate_files`) and the servers of ours
(`podscaler.kube.serving.serving_certificate`) have one each and read it again every minute. Invariant: what was
read last stays in use while the files cannot be read, or do not fit each other because they are being replaced.
"""

import ssl
from pathlib import Path

PERIOD_S = 60.0
"""How often the files are read again."""


class CertificatePair:
    """See the module. Every method blocks.

    Args:
        certificate: the file with the certificate and its intermediates, in PEM.
        key: the file with the private key, in PEM.
        pem: what both held, one after the other, when they were read first; empty: they were not.
    """

    def __init__(self, certificate: Path, key: Path, pem: bytes = b"") -> None:
        self.certificate = certificate
        self.key = key
        self.pem = pem

    def read_again(self) -> bool:
        """Read the files; whether they hold another pair than before, which `pem` then is.

        Raises OSError (ssl.SSLError is one) and ValueError for files that cannot be used: `pem` stays.
        """
        found = self.certificate.read_bytes() + b"\n" + self.key.read_bytes()
        if found == self.pem:
            return False
        self.load_into(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
        self.pem = found
        return True

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use the pair in a context. Raises OSError, and ValueError for a key that is encrypted."""
        context.load_cert_chain(self.certificate, self.key, password=_no_password)


def _no_password() -> str:
    """Instead of a question on the terminal."""
    raise ValueError("the key is encrypted")
