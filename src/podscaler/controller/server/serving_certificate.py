"""The certificate of the controller's own endpoints, in files that somebody else renews.

`podscaler controller` makes one from --tls-cert-file and --tls-private-key-file. Invariant: what was read last stays in
use while the files cannot be read, or do not fit each other because they are being replaced.

Source: kube-controller-manager's flags of these names.
Differs: the files are looked at every minute.
"""

import asyncio
import logging
import ssl
from pathlib import Path

from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError

log = logging.getLogger(__name__)

PERIOD_S = 60.0


class ServingCertificate:
    """See the module; reads the files. Blocks.

    Args:
        certificate, key: the files, in PEM; the first with its intermediates.

    Raises:
        UsageError: they cannot be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._pem = self._read()
            self.context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise UsageError(f"--tls-cert-file {certificate}, --tls-private-key-file {key}: {_cause(error)}") from error

    async def follow(self, clock: Clock) -> None:
        """Take up renewed files until cancelled; connections that are there keep what they have."""
        while True:
            await clock.sleep(PERIOD_S)
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Take up the files if they are others than before. Blocks."""
        try:
            found = self._read()
            if found != self._pem:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                    self._certificate, self._key, password=_no_password
                )
                self.context.load_cert_chain(self._certificate, self._key, password=_no_password)
                self._pem = found
                log.info("the serving certificate %s was renewed", self._certificate)
        except (OSError, ValueError) as error:
            log.warning("the serving certificate %s: %s; the last one stays in use", self._certificate, _cause(error))

    def _read(self) -> bytes:
        return self._certificate.read_bytes() + b"\n" + self._key.read_bytes()


def _no_password() -> str:
    """Instead of a question on the terminal."""
    raise ValueError("the key is encrypted")


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "not a certificate in PEM with its key"
    return str(error.strerror if isinstance(error, OSError) else error)
