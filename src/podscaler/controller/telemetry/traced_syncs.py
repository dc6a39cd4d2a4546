"""Traces each sync as an OpenTelemetry span with the autoscaler, the decision, and the number of requests.

It wraps the reconciler where traces are enabled (`podscaler.cli.options.tracing`), and is not imported elsewhere. The
requests of the sync are spans within it (`podscaler.kube.transport.traced_transport`). A further attribute: in
`_attributes` or, with the decision, `_set_result`.
"""

from opentelemetry.trace import Span, StatusCode, Tracer

from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.telemetry.current_sync import SyncHandler
from podscaler.core.decision import Decision
from podscaler.kube.transport.traced_transport import REQUEST_COUNT, RequestCount

SYNC = "sync"


class TracedSyncs:
    """Opens and ends the span of each sync of one controller.

    Args:
        reconciler: carries out syncs.
        tracer: makes the spans.
    """

    def __init__(self, reconciler: SyncHandler, tracer: Tracer) -> None:
        self._reconciler = reconciler
        self._tracer = tracer

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """Reconcile within a span; as SyncHandler."""
        count = RequestCount()
        token = REQUEST_COUNT.set(count)
        try:
            with self._tracer.start_as_current_span(SYNC, attributes=_attributes(autoscaler)) as span:
                decision = await self._reconciler.reconcile(autoscaler)
                _set_result(span, decision, count.requests)
                return decision
        finally:
            REQUEST_COUNT.reset(token)


def _attributes(autoscaler: Autoscaler) -> dict[str, str]:
    """The attributes of the span that identify the autoscaler and its target."""
    reference = autoscaler.wire.spec.scale_target_ref
    return {
        "podscaler.kind": autoscaler.kind.kind,
        "k8s.namespace.name": autoscaler.metadata.namespace,
        "k8s.hpa.name": autoscaler.metadata.name,
        "k8s.hpa.scaletargetref.kind": reference.kind,
        "k8s.hpa.scaletargetref.name": reference.name,
    }


def _set_result(span: Span, decision: Decision, requests: int) -> None:
    """Add the decision, and the number of requests that the sync sent, to the span."""
    span.set_attribute("podscaler.decision", decision.action.value)
    span.set_attribute("podscaler.requests", requests)
    span.set_attribute("podscaler.desired_replicas", decision.status.desired_replicas)
    if decision.replicas is not None:
        span.set_attribute("podscaler.replicas_written", decision.replicas)
    if decision.error:
        span.set_status(StatusCode.ERROR, decision.error)
