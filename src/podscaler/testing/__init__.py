"""Public help for tests of and with podscaler: virtual time, builders, and fakes that pass the real parts' tests."""

from podscaler.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
