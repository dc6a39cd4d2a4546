"""Counting the results of one probe until they make a verdict.

`probe_loop` feeds it. Pure. A verdict changes after `successThreshold` successes or `failureThreshold` failures in a
row; before the first verdict a readiness or startup probe has not passed, a liveness probe has.

Source: Configure Liveness, Readiness and Startup Probes (Kubernetes documentation).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["startup", "readiness", "liveness"]


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """The numbers of a probe, with the API's defaults.

    Attributes:
        handler: the part that says what to do (`exec`, `httpGet`, `tcpSocket`).
        grace_period_s: terminationGracePeriodSeconds of its own, None for the pod's.
    """

    kind: Kind
    handler: Mapping[str, Any]
    initial_delay_s: int = 0
    period_s: int = 10
    timeout_s: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    grace_period_s: int | None = None


def probe_spec(kind: Kind, probe: Mapping[str, Any]) -> ProbeSpec:
    """The probe of a container's spec."""
    return ProbeSpec(
        kind=kind,
        handler=probe,
        initial_delay_s=probe.get("initialDelaySeconds") or 0,
        period_s=probe.get("periodSeconds") or 10,
        timeout_s=probe.get("timeoutSeconds") or 1,
        success_threshold=probe.get("successThreshold") or 1,
        failure_threshold=probe.get("failureThreshold") or 3,
        grace_period_s=probe.get("terminationGracePeriodSeconds"),
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """The results so far.

    Attributes:
        verdict: True passed, False failed, None not known yet.
        run: how many equal results came last in a row; `run_ok` says of which kind.
    """

    verdict: bool | None = None
    run: int = 0
    run_ok: bool = False

    def counted(self, spec: ProbeSpec, *, ok: bool) -> "Tally":
        """The tally after one more result."""
        run = self.run + 1 if self.run and self.run_ok == ok else 1
        needed = spec.success_threshold if ok else spec.failure_threshold
        return replace(self, verdict=ok if run >= needed else self.verdict, run=run, run_ok=ok)
