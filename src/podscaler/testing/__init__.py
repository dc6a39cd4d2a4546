"""Public help for tests: virtual clock, builders, fakes that pass the contract tests of the real parts.

Reading order: `clock` and `cluster` are used most.
May import: everything but `cli`.
"""

from podscaler.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
