"""Runs exec credential plugins, and caches the credentials that they print until shortly before they expire.

`config.kubeconfig` makes one for a user entry with `exec`; `transport.http_transport` calls `authorization` before each
request, and `pem` if the plugin may provide the client certificate. Rules:

1. One run at a time, shared by all requests; a run that takes longer than a minute is killed.
2. Credentials are used until shortly before their expiry; without an expiry, until the server responds with 401.
3. After a 401 the program runs again, but not within five seconds of its last run, whose credentials are the same.
4. A failed run is not repeated within its back-off; while the last credentials are valid, they stay in use.
5. The program's standard error is logged; its standard output, which holds secrets, never is.

Source: client-go's plugin/pkg/client/auth/exec.
Differs: upstream has no margin before the expiry and no time limit.
"""

import asyncio
import logging
import os
import random

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import UsageError
from podscaler.kube.config import exec_command
from podscaler.kube.config.exec_command import Command, Issued
from podscaler.kube.transport.backoff import Backoff
from podscaler.kube.transport.single_flight import SingleFlight

log = logging.getLogger(__name__)

MARGIN_S = 30.0
"""How long before their expiry credentials are renewed (rule 2)."""
RUN_LIMIT_S = 60.0
"""How long a run may take (rule 1)."""
INTERACTIVE_LIMIT_S = 600.0
"""How long a run may take that asks the user."""
NO_RENEWAL_S = 5.0
"""How long after a run a 401 does not lead to another run (rule 3)."""
MIN_USE_S = 1.0
"""How long credentials are used at least, so that expired ones do not cause a run for each request."""
STDERR_SHOWN_BYTES = 4096
"""How much of the end of standard error is logged or stands in the error."""


class ExecPlugin:
    """Runs the credential program of one user of a kubeconfig, by the module's rules.

    Args:
        command: the program.
        clock: for ages and expiries.
        rng: for the jitter of the back-off; None for a new random generator.
    """

    def __init__(self, command: Command, clock: Clock, rng: random.Random | None = None) -> None:
        self._command = command
        self._clock = clock
        self._flights: SingleFlight[str, Issued] = SingleFlight()  # there is one key only
        self._backoff = Backoff(rng or random.Random())
        self._issued: Issued | None = None
        self._header: str | None = None
        self._fresh_until_s = float("-inf")
        self._ran_at_s = float("-inf")
        self._failure: UsageError | None = None
        self._retry_at_s = float("-inf")

    async def authorization(self) -> str | None:
        """The header; None if the program printed only a certificate. Raises UsageError."""
        if self._clock.monotonic_s() >= self._fresh_until_s:
            await self._renew()
        return self._header

    async def pem(self) -> bytes | None:
        """The client certificate and its key; None if the program printed only a token. Raises UsageError."""
        if self._clock.monotonic_s() >= self._fresh_until_s:
            await self._renew()
        return self._issued.certificate_pem if self._issued else None

    def renew_after_401(self, authorization: str | None) -> bool:
        """Note a 401 to a request with this header; whether the next `authorization` may return another (rule 3)."""
        if authorization != self._header:
            return True
        if self._clock.monotonic_s() - self._ran_at_s < NO_RENEWAL_S:
            return False
        self._fresh_until_s = float("-inf")
        return True

    async def _renew(self) -> None:
        """Run the program unless a failure's back-off lasts; concurrent calls share one run. Raises UsageError."""
        if self._clock.monotonic_s() < self._retry_at_s and self._failure is not None:
            self._keep_or_raise(self._failure)
            return
        try:
            issued = await self._flights.run("", self._run_and_parse)
        except UsageError as error:
            self._keep_or_raise(error)
            return
        if issued is not self._issued:  # the first of the calls that share a run uses the credentials for all
            self._use_credentials(issued)

    def _use_credentials(self, issued: Issued) -> None:
        """Use new credentials from now on."""
        self._issued, self._failure = issued, None
        self._backoff.reset()
        self._header = f"Bearer {issued.token}" if issued.token else None
        self._fresh_until_s = self._clock.monotonic_s() + self._usable_s(issued)

    def _usable_s(self, issued: Issued) -> float:
        """How long credentials are used: until MARGIN_S before their expiry; short-lived ones, half of their life."""
        if issued.expires_at is None:
            return float("inf")
        left_s = (issued.expires_at - self._clock.now_ns()) / NANOSECONDS
        return max(left_s - MARGIN_S, left_s / 2, MIN_USE_S)

    def _keep_or_raise(self, error: UsageError) -> None:
        """Keep the last credentials while they are valid. Raises `error` otherwise."""
        expires_at = self._issued.expires_at if self._issued else 0  # None: they do not expire; 0: there are none
        if expires_at is not None and expires_at <= self._clock.now_ns():
            raise error
        log.warning("%s; the last credentials stay in use", error)

    async def _run_and_parse(self) -> Issued:
        """Run the program; a failure is kept for the time of the back-off. Raises UsageError."""
        try:
            issued = exec_command.parse_output(await self._run_program(), self._command.api_version)
        except ValueError as error:
            self._failure = UsageError(f"exec: {self._command.program}: {error}")
            self._retry_at_s = self._clock.monotonic_s() + self._backoff.next_s()
            raise self._failure from error
        finally:
            self._ran_at_s = self._clock.monotonic_s()
        return issued

    async def _run_program(self) -> bytes:
        """The standard output of one run of the program. Raises ValueError if it cannot be run or fails."""
        is_interactive = self._command.interactive
        try:
            process = await asyncio.create_subprocess_exec(
                self._command.program,
                *self._command.arguments,
                stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if is_interactive else asyncio.subprocess.PIPE,
                env=os.environ | dict(self._command.environment),
            )
        except FileNotFoundError as error:
            raise ValueError(self._command.missing_text()) from error
        except OSError as error:
            raise ValueError(f"cannot be run: {error.strerror}") from error
        return await self._wait_for_end(process)

    async def _wait_for_end(self, process: asyncio.subprocess.Process) -> bytes:
        """Wait for the program, which is killed after its time limit; its standard output. Raises ValueError."""
        limit_s = INTERACTIVE_LIMIT_S if self._command.interactive else RUN_LIMIT_S
        try:
            async with asyncio.timeout(limit_s):
                output, errors = await process.communicate()
        except TimeoutError as error:
            raise ValueError(f"did not end within {limit_s:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        stderr_end = (errors or b"")[-STDERR_SHOWN_BYTES:].decode(errors="replace").strip()
        if process.returncode:
            raise ValueError(
                f"failed with exit code {process.returncode}"
                + (f": {' '.join(stderr_end.split())}" if stderr_end else "")
            )
        if stderr_end:
            log.info("exec: %s: %s", self._command.program, stderr_end)
        return output
