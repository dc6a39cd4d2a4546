"""The TLS certificate of the controller's own endpoints, read again from its files every minute.

`podscaler controller` makes one from --tls-cert-file and --tls-private-key-file.

Source: kube-controller-manager's flags of these names.
"""

import asyncio
import logging
import ssl
from pathlib import Path

from podscaler.base.certificate_pair import PERIOD_S, CertificatePair
from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError

log = logging.getLogger(__name__)


class ServingCertificate:
    """See the module; reads the files. Blocks.

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
        """Use the files if they hold another pair than before. Blocks."""
        certificate = self._pair.certificate
        try:
            if self._pair.read_again():
                self._pair.load_into(self.context)
                log.info("the serving certificate %s was renewed", certificate)
        except (OSError, ValueError) as error:
            log.warning("the serving certificate %s: %s; the last one stays in use", certificate, _cause(error))


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "not a certificate in PEM with its key"
    return str(error.strerror if isinstance(error, OSError) else error)
