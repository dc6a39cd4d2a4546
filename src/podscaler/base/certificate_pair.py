"""Reloads a TLS certificate and its key from two files that another program renews (cert-manager, kubelet).

The client of API servers (`podscaler.kube.config.certificate_files`) and the servers of the controller and the adapter
(`podscaler.kube.serving.serving_certificate`) each have one CertificatePair and call `read_again` every PERIOD_S.
Invariant: the last valid pair stays in use while the files cannot be read, or do not fit each other because only one of
them is replaced yet.
"""

import ssl
from pathlib import Path

PERIOD_S = 60.0
"""The time between two calls of `CertificatePair.read_again`."""


class CertificatePair:
    """The two files, and the PEM that was last read from them. Every method blocks.

    Args:
        certificate: the file with the certificate and its intermediates, in PEM.
        key: the file with the private key, in PEM.
        pem: the content of both files, joined by a newline, if the caller has read them; empty if it has not.
    """

    def __init__(self, certificate: Path, key: Path, pem: bytes = b"") -> None:
        self.certificate = certificate
        self.key = key
        self.pem = pem

    def read_again(self) -> bool:
        """Read the files and return whether the pair changed; `pem` is then the new one.

        False, too, for files that are replaced meanwhile: the next call reads them.

        Raises:
            OSError: a file cannot be read, or the two do not form a pair (ssl.SSLError). `pem` stays.
            ValueError: the key is encrypted. `pem` stays.
        """
        pem = self._read()
        if pem == self.pem:
            return False
        self.load_into(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))  # only checks the pair
        if self._read() != pem:  # replaced in between: what was checked may be another pair
            return False
        self.pem = pem
        return True

    def _read(self) -> bytes:
        """The content of both files as `pem` has it. Raises OSError."""
        return self.certificate.read_bytes() + b"\n" + self.key.read_bytes()

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the pair from the files into a context. Raises OSError as `read_again`, ValueError (encrypted key)."""
        context.load_cert_chain(self.certificate, self.key, password=_no_password)


def _no_password() -> str:
    """Called by OpenSSL for an encrypted key; without it OpenSSL would ask for a password on the terminal."""
    raise ValueError("the key is encrypted")
