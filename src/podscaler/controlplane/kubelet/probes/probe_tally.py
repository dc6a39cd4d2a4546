"""Counts the results of one probe until a threshold is reached.

`probe_loop` uses `Tally`; `kubelet.containers.container_run` finds the probes of a container, and says where a new kind
of probe goes. Pure. The verdict changes after `successThreshold` successes or `failureThreshold` failures in a row.
Before the first verdict `container_run` takes a container as not started and not ready, and does not stop it.

Source: Configure Liveness, Readiness and Startup Probes (Kubernetes documentation).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

ProbeKind = Literal["startup", "readiness", "liveness"]

PROBE_FIELDS: Final[Mapping[ProbeKind, str]] = {
    "startup": "startupProbe",
    "readiness": "readinessProbe",
    "liveness": "livenessProbe",
}
"""The field of core/v1 Container that has the probe of each kind."""


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """A probe, with the API's defaults.

    Attributes:
        handler: the core/v1 Probe as JSON, which has `exec`, `httpGet`, `tcpSocket` or `grpc`.
        grace_period_s: the probe's own terminationGracePeriodSeconds, None for the pod's.
    """

    kind: ProbeKind
    handler: Mapping[str, Any]
    initial_delay_s: int = 0
    period_s: int = 10
    timeout_s: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    grace_period_s: int | None = None


def find_probe(container: Mapping[str, Any], kind: ProbeKind) -> ProbeSpec | None:
    """The probe of this kind in a core/v1 Container, None if it has none."""
    probe = container.get(PROBE_FIELDS[kind])
    if not probe:
        return None
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
        verdict: True passed, False failed, None before a threshold was reached for the first time.
        run_length: how many equal results came last in a row.
        last_ok: whether these are successes; of no meaning before the first result.
    """

    verdict: bool | None = None
    run_length: int = 0
    last_ok: bool = False

    def with_result(self, spec: ProbeSpec, *, ok: bool) -> "Tally":
        """The tally after one more result; `ok` is whether the check succeeded."""
        run_length = self.run_length + 1 if self.last_ok == ok else 1
        threshold = spec.success_threshold if ok else spec.failure_threshold
        verdict = ok if run_length >= threshold else self.verdict
        return Tally(verdict, run_length, last_ok=ok)
