"""Provides a client certificate from files that another process renews.

`config.kubeconfig` makes one if a user entry names files; `transport.http_transport` calls it before each request, and
uses a renewed certificate for new connections. Invariant: the last usable certificate stays in use while the files
cannot be read, or do not match each other because they are being replaced.

Source: client-go's transport (which reads such files again every five minutes).
Differs: they are read every minute.
"""

import asyncio
import logging
from pathlib import Path

from podscaler.base.certificate_pair import PERIOD_S, CertificatePair
from podscaler.base.clock import Clock

log = logging.getLogger(__name__)


class CertificateFiles:
    """The certificate and key files of one user of a kubeconfig.

    Args:
        certificate, key: the files, in PEM.
        clock: for the minute after which they are read again.
        pem: their content when the kubeconfig was read.
    """

    def __init__(self, certificate: Path, key: Path, clock: Clock, pem: bytes) -> None:
        self._pair = CertificatePair(certificate, key, pem)
        self._clock = clock
        self._read_at_s = clock.monotonic_s()

    async def pem(self) -> bytes:
        """The certificate and its key, one after the other; files read over a minute ago are read again before."""
        now_s = self._clock.monotonic_s()
        if now_s - self._read_at_s >= PERIOD_S:
            self._read_at_s = now_s
            await self._read_again()
        return self._pair.pem

    async def _read_again(self) -> None:
        """Read the files again; a failure is logged, and the last certificate stays in use."""
        try:
            await asyncio.to_thread(self._pair.read_again)
        except (OSError, ValueError) as error:
            log.warning("client certificate %s: %s; the last one stays in use", self._pair.certificate, error)
