"""Examines one autoscaler of a cluster for `podscaler doctor`: reads everything about it, and runs all checks.

Called by `podscaler.cli.diagnosis.doctor`. Reading and deciding are those of `podscaler explain`, linting is that of
`podscaler lint`; `autoscaler_objects` reads the rest. What may not be read is a note, and the checks that need it say
less. Nothing is written. A new check is a module whose `check` is called in `_examination_of`, with an Area.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.cli.diagnosis import capacity_checks, events, findings, metric_checks, pod_checks, scale_writers
from podscaler.cli.diagnosis.autoscaler_objects import AutoscalerObjects, JsonObject, RelatedObjectsReader, name_of
from podscaler.cli.diagnosis.capacity_checks import CapacityFacts
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.cli.diagnosis.metric_checks import MetricFacts, QueryRecorder
from podscaler.cli.explain import explain_autoscalers, explain_cluster
from podscaler.cli.explain.assumed_controller import AssumedController, SettingsFinder
from podscaler.cli.explain.explain_cluster import AutoscalerExplainer, NamespaceCache
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult
from podscaler.cli.explain.managing_controller import ManagingController
from podscaler.cli.lint import cluster_reader
from podscaler.cli.lint.cluster_reader import ClusterSnapshot
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options import installation
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.core.model.trace import Trace
from podscaler.explain import advice, wording
from podscaler.explain.explanation_parts import Section
from podscaler.kube.client.client import Client
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import TransportError
from podscaler.lint import linter
from podscaler.lint.model import workloads
from podscaler.lint.model.findings import Severity
from podscaler.lint.model.lint_context import LintContext
from podscaler.lint.model.workloads import Workload
from podscaler.lint.rules import served_metrics
from podscaler.observe import health
from podscaler.observe.health import Health, HealthSeverity, HealthState

UNSYNCED_NS = 60 * NANOSECONDS
"""A spec that no controller has synced for so long is a finding."""
_METRIC_STATES = (HealthState.NO_METRICS, HealthState.SOME_METRICS, HealthState.FALLBACK)
"""States that a failing metric causes."""
_METRIC_TYPES = frozenset(served_metrics.GROUPS)
_NO_CONTROLLER_FIX = "see whether kube-controller-manager or podscaler runs: kubectl -n kube-system get pods,leases"
_LEVEL_BY_HEALTH = {
    HealthSeverity.FINE: FindingLevel.NOTE,
    HealthSeverity.NOTABLE: FindingLevel.NOTE,
    HealthSeverity.LIMITED: FindingLevel.WARNING,
    HealthSeverity.BROKEN: FindingLevel.ERROR,
}
_LEVEL_BY_LINT_SEVERITY = {
    Severity.ERROR: FindingLevel.ERROR,
    Severity.WARNING: FindingLevel.WARNING,
    Severity.INFO: FindingLevel.NOTE,
}
_AREA_BY_LINT_RULE = {
    "PSL001": Area.PODS,
    "PSL003": Area.STATE,
    "PSL004": Area.CAPACITY,
    "PSL013": Area.METRICS,
    "PSL023": Area.CAPACITY,
}
"""Lint rules about what a check examines more closely: left out if there is a finding of that area."""


class Examination(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `podscaler doctor`.

    Attributes:
        autoscaler: `namespace/name`.
        now: the instant of the examination, in ns since the epoch.
        state, severity, reason: as in `podscaler.observe.health`.
        summary: the sentence of `podscaler explain`; empty if it could not be decided.
        findings: the most important first.
        sections: the facts that were checked, one section for each check.
        notes: what could not be read, a sentence each.
    """

    autoscaler: str
    now: int
    state: str
    severity: int
    reason: str
    summary: str
    findings: tuple[DoctorFinding, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing but notes among the findings."""
        return all(finding.level is FindingLevel.NOTE for finding in self.findings)


@dataclass(slots=True)
class _Facts:
    """What was read; None for what could not be.

    Attributes:
        status_manager: the manager that wrote the status last; empty: not known.
        explain_result: the explanation of what the controller would decide now.
        queries: the queries to the metrics APIs that this decision needed.
        pods: those of the target.
        api_services: all APIServices, of whatever group.
        snapshot: what the linter reads of the namespace.
    """

    autoscaler: Autoscaler
    status_manager: str
    explain_result: ExplainResult | None
    queries: QueryRecorder
    objects: AutoscalerObjects
    pods: Sequence[JsonObject] | None = None
    api_services: Sequence[JsonObject] | None = None
    nodes: Sequence[JsonObject] | None = None
    snapshot: ClusterSnapshot | None = None

    @property
    def kubectl_name(self) -> str:
        """The kind and name for kubectl: `hpa web`."""
        kind = "hpa" if self.autoscaler.kind is HPA else self.autoscaler.kind.flag
        return f"{kind} {self.autoscaler.metadata.name}"

    @property
    def trace(self) -> Trace | None:
        """The trace of the decision; None if it could not be computed."""
        return self.explain_result.explanation.trace if self.explain_result is not None else None

    @property
    def manager(self) -> ManagingController | None:
        """The controller that manages the autoscaler."""
        return self.explain_result.manager if self.explain_result is not None else None


async def examine(config: Config, request: ExplainRequest, controller: AssumedController, clock: Clock) -> Examination:
    """The examination of the requested autoscaler.

    Raises UsageError if the cluster cannot be reached, does not know the user, or has no such autoscaler or several;
    StatusError if the autoscaler may not be read.
    """
    async with explain_cluster.connected(config, clock, "doctor") as client:
        namespace = request.namespace or config.namespace
        settings = controller.settings.decision
        autoscalers = await explain_autoscalers.read_autoscalers(client, namespace, request.kind, settings)
        autoscaler = autoscalers.get_requested(request, namespace)
        write = autoscalers.find_status_write(autoscaler)
        notes: list[str] = []
        async with explain_cluster.open_cluster(client, controller, clock) as cluster:
            queries = QueryRecorder(cluster.metrics, clock)
            effective = await SettingsFinder(client, controller).find(write)
            recording_cluster = replace(cluster, metrics=queries)
            namespace_cache = NamespaceCache(recording_cluster, autoscalers)
            explainer = AutoscalerExplainer(recording_cluster, namespace_cache, effective)
            explain_result = await _explain(explainer, request, autoscaler, notes)
        reader = RelatedObjectsReader(client, clock, notes)
        objects = await reader.read_around(autoscaler)
        facts = _Facts(autoscaler, write.manager if write else "", explain_result, queries, objects)
        await _read_rest(facts, reader, client, clock)
    return _examination_of(facts, clock.now_ns())


async def _explain(
    explainer: AutoscalerExplainer, request: ExplainRequest, autoscaler: Autoscaler, notes: list[str]
) -> ExplainResult | None:
    """The explanation; None with a note where something that it needs cannot be read. Raises TransportError."""
    try:
        return await explainer.explain(request, autoscaler)
    except TransportError:
        raise
    except StatusError as error:
        notes.append(f"what it would decide now cannot be computed: {error}")
        return None


async def _read_rest(facts: _Facts, reader: RelatedObjectsReader, client: Client, clock: Clock) -> None:
    """Read what the checks need besides the decision; what may not be read is noted."""
    namespace = facts.autoscaler.metadata.namespace
    trace = facts.trace
    selector = trace.selection.selector if trace is not None and trace.selection is not None else ""
    if selector:
        query = [("labelSelector", selector)]
        facts.pods = await reader.attempt("pods", lambda: reader.read_all("", "v1", namespace, "pods", query))
    group = "apiregistration.k8s.io"
    facts.api_services = await reader.attempt("APIServices", lambda: reader.read_all(group, "v1", "", "apiservices"))
    facts.nodes = await reader.attempt("nodes", lambda: reader.read_all("", "v1", "", "nodes"))
    facts.snapshot = await reader.attempt(
        "objects for lint", lambda: cluster_reader.read_with_client(client, [namespace], [], clock)
    )
    reader.notes += facts.snapshot.notes if facts.snapshot is not None else []


def _examination_of(facts: _Facts, now_ns: int) -> Examination:
    """The results of all checks of what was read."""
    meta = facts.autoscaler.metadata
    health_now = health.of(facts.autoscaler.wire)
    found_events = events.read(facts.objects.events)
    last_scale_ns = events.instant_ns(facts.autoscaler.wire.status.last_scale_time)
    other_results = [
        metric_checks.check(_metric_facts(facts), now_ns),
        pod_checks.check(facts.pods, _utilized_resources(facts.autoscaler), now_ns),
        scale_writers.check(facts.objects.target, facts.status_manager, last_scale_ns, now_ns),
        capacity_checks.check(_capacity_facts(facts)),
        events.check(found_events, now_ns, meta.namespace),
    ]
    other_findings = [finding for check_result in other_results for finding in check_result.findings]
    state_result = _check_state(facts, health_now, other_findings, now_ns)
    checked_findings = [*state_result.findings, *other_findings]
    lint_findings = _lint_findings(facts, {finding.area for finding in checked_findings})
    return Examination(
        autoscaler="/".join(facts.autoscaler.key),
        now=now_ns,
        state=health_now.state.value,
        severity=int(health_now.severity),
        reason=health_now.reason,
        summary=facts.explain_result.explanation.summary if facts.explain_result is not None else "",
        findings=findings.ordered([*checked_findings, *lint_findings]),
        sections=tuple([check_result.section for check_result in (state_result, *other_results)]),
        notes=tuple(dict.fromkeys(facts.objects.notes)),
    )


def _check_state(
    facts: _Facts, health_now: Health, other_findings: Sequence[DoctorFinding], now_ns: int
) -> CheckResult:
    """The state of the autoscaler and of its controller; `other_findings` are those of the other checks."""
    duration = "" if health_now.since_ns is None else f", for {wording.span(max(now_ns - health_now.since_ns, 0))}"
    lines = [("state", f"{health_now.state}{duration}")]
    if health_now.reason:
        lines.append(("reason", health_now.reason))
    if facts.manager is not None and facts.manager.section is not None:
        lines += [(line.label, line.text) for line in facts.manager.section.lines]
    return CheckResult(section("State", lines), tuple(_state_findings(facts, health_now, other_findings, now_ns)))


def _state_findings(
    facts: _Facts, health_now: Health, other_findings: Sequence[DoctorFinding], now_ns: int
) -> Iterator[DoctorFinding]:
    """The findings about the state; a state that a finding about metrics explains is left out."""
    has_metric_error = any(
        finding.area is Area.METRICS and finding.level is FindingLevel.ERROR for finding in other_findings
    )
    is_explained = health_now.state in _METRIC_STATES and has_metric_error
    if not is_explained and (health_now.is_problem or health_now.state is HealthState.DISABLED):
        level = _LEVEL_BY_HEALTH[health_now.severity]
        message = f"{health_now.state}: {health_now.reason}"
        yield DoctorFinding(level, Area.STATE, message, _state_fix(facts, health_now))
    yield from _unsynced_findings(facts, now_ns)
    lease = facts.manager.lease if facts.manager is not None else None
    if lease is not None and not lease.is_live and facts.status_manager.startswith(installation.MANAGER):
        message = f"nobody holds the Lease {lease.name} of the controller that wrote the status"
        fix = "see whether its pods run: kubectl get pods -A -l app.kubernetes.io/name=podscaler"
        yield DoctorFinding(FindingLevel.ERROR, Area.STATE, message, fix)


def _state_fix(facts: _Facts, health_now: Health) -> str:
    """What to do about the state: a command or a sentence; empty if nothing is known."""
    namespace, spec = facts.autoscaler.metadata.namespace, facts.autoscaler.wire.spec
    reference = spec.scale_target_ref
    explanation = facts.explain_result.explanation if facts.explain_result is not None else None
    if health_now.state is HealthState.AT_MAXIMUM:
        desired_replicas = explanation.verdict.wanted if explanation is not None else None
        raised_maximum = max(desired_replicas or 0, spec.max_replicas + 1)
        patch = f"kubectl -n {namespace} patch {facts.kubectl_name} --type merge -p "
        return f'if there is room and the load is real: {patch}\'{{"spec":{{"maxReplicas":{raised_maximum}}}}}\''
    if health_now.state is HealthState.DISABLED:
        return f"to hand it back: kubectl -n {namespace} scale {reference.kind.lower()}/{reference.name} --replicas=1"
    if health_now.state is HealthState.UNKNOWN:
        return _NO_CONTROLLER_FIX
    advice_texts = explanation.advice if explanation is not None else ()
    return advice.for_error(health_now.reason) or next(iter(advice_texts), "")


def _unsynced_findings(facts: _Facts, now_ns: int) -> Iterator[DoctorFinding]:
    """A finding if the spec is older than UNSYNCED_NS and not synced; none where the object does not show that."""
    generation = facts.objects.autoscaler.get("metadata", {}).get("generation") or 0
    observed = facts.autoscaler.wire.status.observed_generation
    field_writes = scale_writers.field_writes(facts.objects.autoscaler)
    spec_writes_ns = [field_write.at_ns or 0 for field_write in field_writes if not field_write.subresource]
    if observed is None or observed >= generation or not spec_writes_ns:
        return
    written_at_ns = max(spec_writes_ns)
    if now_ns - written_at_ns < UNSYNCED_NS:
        return
    message = f"no controller has looked at the spec that was written {wording.age(written_at_ns, now_ns)}"
    yield DoctorFinding(FindingLevel.ERROR, Area.STATE, message, _NO_CONTROLLER_FIX)


def _metric_facts(facts: _Facts) -> MetricFacts:
    """The facts for `metric_checks.check`; external metrics of MetricSources need no APIService."""
    trace = facts.trace
    metrics = facts.autoscaler.wire.spec.metrics or ()
    metric_types = [metric.type for metric in metrics if metric.type in _METRIC_TYPES]
    groups = list(dict.fromkeys(served_metrics.GROUPS[metric_type] for metric_type in metric_types))
    if trace is not None and any(step.query for step in trace.metrics):  # a query that a MetricSource names
        groups = [group for group in groups if group != served_metrics.EXTERNAL]
    listed = facts.api_services
    by_group = {} if listed is None else {group: _find_api_service(listed, group) for group in groups}
    return MetricFacts(trace, facts.queries.queries, by_group)


def _find_api_service(api_services: Sequence[JsonObject], group: str) -> JsonObject | None:
    """The APIService of a group, one that is not Available before others; None if there is none."""
    matching = [service for service in api_services if (service.get("spec") or {}).get("group") == group]
    return min(matching, key=metric_checks.is_available, default=None)


def _utilized_resources(autoscaler: Autoscaler) -> list[str]:
    """The resources of whole pods whose utilization the autoscaler uses; those of ContainerResource are left out."""
    sources = [metric.resource for metric in autoscaler.wire.spec.metrics or () if metric.resource is not None]
    return [source.name for source in sources if source.target.average_utilization is not None]


def _capacity_facts(facts: _Facts) -> CapacityFacts:
    """The facts for `capacity_checks.check`."""
    replicas = facts.trace.current_replicas if facts.trace is not None else None
    return CapacityFacts(
        namespace=facts.autoscaler.metadata.namespace,
        kubectl_name=facts.kubectl_name,
        replicas=facts.autoscaler.wire.status.current_replicas if replicas is None else replicas,
        max_replicas=facts.autoscaler.wire.spec.max_replicas,
        workload=_find_workload(facts),
        quotas=_find_listed(facts, "ResourceQuota"),
        limit_ranges=_find_listed(facts, "LimitRange"),
        nodes=facts.nodes,
    )


def _find_workload(facts: _Facts) -> Workload | None:
    """The target with its pod template as the linter reads it; None if that is not known."""
    if facts.snapshot is None:
        return None
    context = LintContext(facts.snapshot.items, facts.snapshot.cluster)
    for autoscaler in context.autoscalers:
        if _is_examined(facts, autoscaler.item.kind, autoscaler.item.namespace, autoscaler.item.name):
            return workloads.target_of(autoscaler, context)
    return None


def _find_listed(facts: _Facts, kind: str) -> list[JsonObject] | None:
    """The objects of a kind of the core group that the linter read; None if they may not be listed."""
    if facts.snapshot is None or ("", kind.lower()) not in facts.snapshot.listed:
        return None
    return [item.written for item in facts.snapshot.items if item.kind == kind and not item.group]


def _is_examined(facts: _Facts, kind: str, namespace: str, name: str) -> bool:
    """Whether these name the examined autoscaler."""
    meta = facts.autoscaler.metadata
    return (kind, namespace, name) == (facts.autoscaler.kind.kind, meta.namespace, meta.name)


def _lint_findings(facts: _Facts, areas: set[Area]) -> Iterator[DoctorFinding]:
    """The lint findings about the autoscaler and its target; `areas` are those of the findings of the checks."""
    if facts.snapshot is None:
        return
    target, namespace = facts.objects.target, facts.autoscaler.metadata.namespace
    target_identity = (target.get("kind"), namespace, name_of(target)) if target is not None else None
    for lint_finding in linter.lint(facts.snapshot.items, facts.snapshot.cluster):
        identity = (lint_finding.kind, lint_finding.namespace, lint_finding.name)
        if identity != target_identity and not _is_examined(facts, *identity):
            continue
        if _AREA_BY_LINT_RULE.get(lint_finding.rule.id) not in areas:
            place = f"{lint_finding.rule.id} {lint_finding.field}".rstrip()
            level = _LEVEL_BY_LINT_SEVERITY[lint_finding.rule.severity]
            yield DoctorFinding(level, Area.LINT, f"{place}: {lint_finding.message}", lint_finding.fix)
