"""How long a lease lasts, and when it is renewed: the durations of `--leader-elect-*`, checked.

Source: client-go's leader election; component-base's LeaderElectionConfiguration and its validation.
"""

from dataclasses import dataclass

from podscaler.base.errors import UsageError

JITTER_FACTOR = 1.2
"""By how much of itself a candidate's wait may be longer, at random."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The three durations, in seconds.

    Attributes:
        lease_duration_s: how long others wait after the last renewal that they saw. The lease holds whole seconds.
        renew_deadline_s: how long after its last renewal a holder may act, and how long it tries to renew.
        retry_period_s: the wait between two tries.
    """

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        """Raises UsageError for durations with which two could act at once, or nobody."""
        if self.lease_duration_s < 1 or self.renew_deadline_s <= 0 or self.retry_period_s <= 0:
            raise UsageError(
                "--leader-elect-lease-duration must be at least 1s, and --leader-elect-renew-deadline and "
                "--leader-elect-retry-period greater than zero"
            )
        if int(self.lease_duration_s) <= self.renew_deadline_s:
            raise UsageError(
                "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline, in whole seconds"
            )
        if self.renew_deadline_s <= self.retry_period_s * JITTER_FACTOR:
            raise UsageError(
                f"--leader-elect-renew-deadline must be greater than {JITTER_FACTOR} times --leader-elect-retry-period"
            )

    @property
    def attempt_s(self) -> float:
        """How long one try may take."""
        return self.renew_deadline_s / 2
