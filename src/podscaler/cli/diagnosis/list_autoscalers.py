"""`podscaler list`: the autoscalers of a cluster, each with its state in a word, its replicas and its metrics.

`podscaler.cli.main` registers the command. Everything is computed from specs and statuses, so that it works with any
controller. The states are those of `podscaler.observe.health`; the objects are read as for `podscaler explain`. A new
column: an attribute of ListedAutoscaler (a field of the JSON output) that `row_of` sets, and a name and a cell in
`_Table` (docs/list.md).
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from podscaler.api.kinds.autoscaling import hpa_table
from podscaler.api.machinery import instants, printing
from podscaler.api.typed.autoscaling import MetricSpec
from podscaler.base.clock import NANOSECONDS, Clock, SystemClock
from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.diagnosis import text_table
from podscaler.cli.options.flags import kubeconfig_options
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.core.model import settings
from podscaler.explain import wording
from podscaler.kube.transport.config import Config
from podscaler.observe import health

MILLISECOND_NS = 1_000_000
TARGETS_WIDTH = 60
"""The characters of the column TARGETS; longer texts are cut, unless the table is wide."""
EXAMPLE = """\b
Examples:
  podscaler list -A
  podscaler list -A --problem
  podscaler list -n shop -o wide
  kubectl podscaler list -o json
"""


class ListedMetric(msgspec.Struct, frozen=True, rename="camel"):
    """One metric of an autoscaler; `text` is its value against its target as kubectl prints it, `cpu: 63%/70%`."""

    name: str
    type: str
    text: str


class ListedAutoscaler(msgspec.Struct, frozen=True, rename="camel"):
    """One autoscaler of the list; instants in milliseconds since the epoch, None if they are not known.

    Attributes:
        state, severity, reason: as in `podscaler.observe.health`.
        target: the scaled object, `Kind/name`.
        replicas: of the target at the latest sync; None if the status has no conditions.
        desired: the replicas that the latest sync decided on; None likewise, and if it could decide nothing.
        min, max: the limits of the spec, with the default 1 of `min`.
        last_scale_at: the latest scaling that the status tells of.
        since: the earliest instant at which this state can have begun.
        decided_by: the field manager that wrote the status; empty: not known.
    """

    namespace: str
    name: str
    kind: str
    state: str
    severity: int
    reason: str
    target: str
    replicas: int | None
    desired: int | None
    min: int
    max: int
    metrics: tuple[ListedMetric, ...]
    last_scale_at: int | None
    since: int | None
    decided_by: str

    @property
    def is_problem(self) -> bool:
        """Whether `--problem` shows it."""
        return self.severity >= health.HealthSeverity.LIMITED

    @property
    def command_name(self) -> str:
        """The name for other commands: with the kind for a PodAutoscaler."""
        return self.name if self.kind == HPA.kind else f"{self.kind.lower()}/{self.name}"


@click.command("list", epilog=EXAMPLE)
@click.option("-A", "--all-namespaces", is_flag=True, help="the autoscalers of all namespaces")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="of the autoscalers  [default: the context's]")
@click.option("--problem", is_flag=True, help="only autoscalers with a problem, the worst first, with the reason")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", show_default=True)
@kubeconfig_options
def command(
    all_namespaces: bool, namespace: str | None, problem: bool, output: str, kubeconfig: str | None, context: str | None
) -> None:
    """List the autoscalers of a cluster with what they do.

    STATE is a word: Steady, ScalingUp, AtMaximum, NoMetrics, ... (docs/list.md). Works with any controller, and writes
    nothing.
    """
    from podscaler.kube.config import locate  # the client takes a while to import

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if all_namespaces and namespace:
        raise UsageError("--namespace and --all-namespaces exclude each other")
    config = locate.find_config(kubeconfig, context)
    read_namespace = "" if all_namespaces else namespace or config.namespace
    clock = SystemClock()
    autoscalers = asyncio.run(read(config, read_namespace, clock))
    rows = sorted((row for row in autoscalers if row.is_problem), key=_by_severity) if problem else autoscalers
    if output == "json":
        click.echo(_json(rows, config, clock))
        return
    if not rows:
        click.echo(_empty_text(len(autoscalers), read_namespace))
        return
    table = _Table(has_namespace=all_namespaces, is_wide=output == "wide", has_reason=problem or output == "wide")
    click.echo("\n".join(text_table.lines([table.header(), *(table.cells(row, clock.now_ns()) for row in rows)])))


async def read(config: Config, namespace: str, clock: Clock) -> list[ListedAutoscaler]:
    """The autoscalers of a namespace (empty: of all), by namespace and name.

    Raises UsageError if the cluster cannot be reached, or does not let the user list HorizontalPodAutoscalers;
    StatusError for other failures. PodAutoscalers that cannot be listed are left out.
    """
    from podscaler.cli.explain import explain_autoscalers, explain_cluster

    async with explain_cluster.connected(config, clock, "list") as client:
        try:
            listed = await explain_autoscalers.read_autoscalers(client, namespace, None, settings.DEFAULT)
        except StatusError as error:
            if error.code != 403:
                raise
            advice = "" if namespace else "; name a namespace with -n"
            raise UsageError(f"the API server does not let you list autoscalers: {error}{advice}") from None
        rows = [row_of(autoscaler, listed.find_status_write(autoscaler)) for autoscaler in listed.all_of(None)]
        return sorted(rows, key=lambda row: (row.namespace, row.name, row.kind))


def row_of(autoscaler: Autoscaler, write: StatusWrite | None) -> ListedAutoscaler:
    """The row of an autoscaler; `write`: the last write of its status, None if it is not known."""
    wire = autoscaler.wire
    status, spec = wire.status, wire.spec
    health_now = health.of(wire)
    is_reported, is_broken = bool(status.conditions), health_now.severity >= health.HealthSeverity.BROKEN
    return ListedAutoscaler(
        namespace=wire.metadata.namespace,
        name=wire.metadata.name,
        kind=autoscaler.kind.kind,
        state=health_now.state.value,
        severity=int(health_now.severity),
        reason=health_now.reason,
        target=f"{spec.scale_target_ref.kind}/{spec.scale_target_ref.name}",
        replicas=status.current_replicas if is_reported else None,
        desired=status.desired_replicas if is_reported and not is_broken else None,
        min=1 if spec.min_replicas is None else spec.min_replicas,
        max=spec.max_replicas,
        metrics=tuple(_listed_metrics(autoscaler)),
        last_scale_at=_milliseconds(status.last_scale_time),
        since=None if health_now.since_ns is None else health_now.since_ns // MILLISECOND_NS,
        decided_by=write.manager if write is not None else "",
    )


def _listed_metrics(autoscaler: Autoscaler) -> Iterator[ListedMetric]:
    """Each metric of the spec with its value in the status, which has the metrics in the same order."""
    current: list[dict[str, Any]] = msgspec.to_builtins(autoscaler.wire.status.current_metrics or ())
    for index, spec in enumerate(autoscaler.wire.spec.metrics or ()):
        status = current[index] if index < len(current) else {}  # shorter until a sync has seen all metrics
        yield ListedMetric(_metric_name(spec), spec.type, hpa_table.targets([msgspec.to_builtins(spec)], [status]))


def _metric_name(spec: MetricSpec) -> str:
    """The name of the metric or the resource; empty for a type that is not known."""
    resource = spec.resource or spec.container_resource
    if resource is not None:
        return resource.name
    custom = spec.pods or spec.object or spec.external
    return custom.metric.name if custom is not None else ""


def _milliseconds(timestamp: str | None) -> int | None:
    """A timestamp in ms since the epoch; None if there is none, or it is invalid."""
    try:
        return instants.parse(timestamp) // MILLISECOND_NS if timestamp else None
    except ValueError:
        return None


def _by_severity(row: ListedAutoscaler) -> tuple[int, str, str, str]:
    """The sort key by which the worst autoscalers come first."""
    return -row.severity, row.namespace, row.name, row.kind


def _json(rows: Sequence[ListedAutoscaler], config: Config, clock: Clock) -> str:
    output = {"now": clock.now_ns() // MILLISECOND_NS, "cluster": config.server, "rows": rows}
    return msgspec.json.format(msgspec.json.encode(output), indent=2).decode()


def _empty_text(count: int, namespace: str) -> str:
    """The line that is printed in place of an empty table; `count` is the number of autoscalers before `--problem`."""
    scope = f"in the namespace {namespace}" if namespace else "in the cluster"
    if not count:
        return f"there are no autoscalers {scope}"
    return f"no problems: {wording.count(count, 'autoscaler')} {scope}"


class _Table:
    """The columns of the text output.

    Args:
        has_namespace: whether rows of several namespaces are shown.
        is_wide: whether the target and the deciding controller are shown, and metrics are not cut.
        has_reason: whether the last column is the reason.
    """

    def __init__(self, *, has_namespace: bool, is_wide: bool, has_reason: bool) -> None:
        self._has_namespace = has_namespace
        self._is_wide = is_wide
        self._has_reason = has_reason

    def header(self) -> list[str]:
        """The names of the columns."""
        names = ["NAME", "STATE", "REPLICAS", "DESIRED", "MIN", "MAX", "TARGETS", "SINCE"]
        return self._shown_cells("NAMESPACE", names, ["REFERENCE", "DECIDED BY"], "REASON")

    def cells(self, row: ListedAutoscaler, now_ns: int) -> list[str]:
        """The cells of a row."""
        targets = ", ".join(metric.text for metric in row.metrics) or printing.NONE
        if len(targets) > TARGETS_WIDTH and not self._is_wide:
            targets = f"{targets[: TARGETS_WIDTH - 3]}..."
        cells = [
            row.command_name,
            row.state,
            _count_text(row.replicas),
            _count_text(row.desired),
            str(row.min),
            str(row.max),
            targets,
            _age_text(row.since, now_ns),
        ]
        return self._shown_cells(row.namespace, cells, [row.target, row.decided_by or printing.UNKNOWN], row.reason)

    def _shown_cells(self, namespace: str, cells: list[str], wide_cells: list[str], reason: str) -> list[str]:
        """A row with those of its optional cells that the table shows."""
        return [
            *([namespace] if self._has_namespace else []),
            *cells,
            *(wide_cells if self._is_wide else []),
            *([reason] if self._has_reason else []),
        ]


def _count_text(replicas: int | None) -> str:
    return "-" if replicas is None else str(replicas)


def _age_text(since_ms: int | None, now_ns: int) -> str:
    """The time since an instant (None: not known) for the table."""
    if since_ms is None:
        return printing.UNKNOWN
    return printing.elapsed(max(now_ns - since_ms * MILLISECOND_NS, 0) // NANOSECONDS)
