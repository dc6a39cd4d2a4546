"""Public helpers for tests: a virtual clock, builders of objects, and fakes that pass the contract tests of real parts.

Entry point: `VirtualClock`; the other modules are imported by name.
Reading order: `clock`; `transport` and `cluster` (a fake API server for clients); `autoscaling` (a controller on it);
`scenario` (the decision core alone); `registry`, `node` and `containers` (for controllers and the kubelet).
May import: everything but `cli`.
"""

from podscaler.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
