"""Writes the Grafana dashboards of the Helm chart: the controller's health, and one autoscaler.

Called by `make manifests` (`python tools/grafana_boards.py [FOLDER]`); a test repeats it and compares. A new panel: add
a Panel to `HEALTH` or `AUTOSCALER`; its place on the board follows from its width.

The metrics are the controller's and the adapter's (docs/controller.md, docs/adapter.md), and kube-state-metrics' for
the board of an autoscaler, which therefore also works where the built-in controller decides.

Source: Grafana's JSON model of dashboards (schema version 39).
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "deploy" / "helm" / "podscaler" / "dashboards"
COLUMNS = 24
HEIGHT = 8
STAT_HEIGHT = 4
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
CONTROLLER = "horizontal_pod_autoscaler_controller"
JOB = 'job=~"$job"'
AUTOSCALER_LABELS = 'namespace="$namespace", horizontalpodautoscaler="$autoscaler"'


class Query(NamedTuple):
    """One expression of a panel; `legend` names its series, with labels as `{{label}}`."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """One panel.

    Attributes:
        unit: as Grafana names it: `short`, `s`, `percentunit`, `reqps`, `bytes`.
        width: in columns of COLUMNS.
        kind: `timeseries`, or `stat` for one number.
        is_stepped: whether values hold until the next one, as counts of replicas do.
    """

    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "short"
    width: int = 8
    kind: str = "timeseries"
    is_stepped: bool = False


class Variable(NamedTuple):
    """A choice above the panels: the values of a label in the series of `metric`."""

    name: str
    title: str
    metric: str
    label: str
    has_all: bool = False


class Board(NamedTuple):
    """One dashboard; `rows` are titles with their panels."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[tuple[str, Sequence[Panel]]]


def _series(metric: str, matchers: str = AUTOSCALER_LABELS) -> str:
    """A metric of kube-state-metrics about the chosen autoscaler."""
    return f"kube_horizontalpodautoscaler_{metric}{{{matchers}}}"


def _quantiles(metric: str, matchers: str) -> Sequence[Query]:
    """The median and the 99th percentile of a histogram."""
    return [
        Query(f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{{matchers}}}[$__rate_interval])))", name)
        for share, name in ((0.5, "median"), (0.99, "99 %"))
    ]


HEALTH = Board(
    uid="podscaler-health",
    title="podscaler: controller health",
    description="Syncs, their lateness, failures, requests and resources of podscaler controller and its adapter.",
    variables=[Variable("job", "job", f"{CONTROLLER}_num_horizontal_pod_autoscalers", "job", has_all=True)],
    rows=[
        (
            "Now",
            [
                Panel(
                    "Autoscalers",
                    "Autoscalers that are synced.",
                    [Query(f"sum({CONTROLLER}_num_horizontal_pod_autoscalers{{{JOB}}})", "autoscalers")],
                    width=4,
                    kind="stat",
                ),
                Panel(
                    "Leaders",
                    "Processes that hold the Lease; 1 is right. With shards each process holds some of them.",
                    [Query(f"sum(leader_election_master_status{{{JOB}}})", "leaders")],
                    width=4,
                    kind="stat",
                ),
                Panel(
                    "Lateness, 99 %",
                    "99 % of syncs began at most this long after they were due.",
                    _quantiles("podscaler_sync_lateness_seconds", JOB)[1:],
                    unit="s",
                    width=4,
                    kind="stat",
                ),
                Panel(
                    "Failed syncs",
                    "The share of syncs with an error.",
                    [
                        Query(
                            f'(sum(rate({CONTROLLER}_reconciliations_total{{{JOB}, error!="none"}}[$__rate_interval]))'
                            " or vector(0)) / "
                            f"sum(rate({CONTROLLER}_reconciliations_total{{{JOB}}}[$__rate_interval]))",
                            "failed",
                        )
                    ],
                    unit="percentunit",
                    width=4,
                    kind="stat",
                ),
                Panel(
                    "API server faults",
                    "1 while the API server does not answer, or does not accept the credentials.",
                    [Query(f"max(podscaler_api_server_fault{{{JOB}}})", "fault")],
                    width=4,
                    kind="stat",
                ),
                Panel(
                    "Bugs in an hour",
                    "Failures that are bugs; the log has the traceback of each.",
                    [Query(f"sum(increase(podscaler_panics_total{{{JOB}}}[1h]))", "bugs")],
                    width=4,
                    kind="stat",
                ),
            ],
        ),
        (
            "Syncs",
            [
                Panel(
                    "Syncs",
                    "Syncs a second by what they did.",
                    [
                        Query(
                            f"sum by (action) (rate({CONTROLLER}_reconciliations_total{{{JOB}}}[$__rate_interval]))",
                            "{{action}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Failed syncs by kind",
                    "spec: the autoscaler or its metrics are wrong; internal: a request failed.",
                    [
                        Query(
                            f"sum by (error) (rate({CONTROLLER}_reconciliations_total"
                            f'{{{JOB}, error!="none"}}[$__rate_interval]))',
                            "{{error}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Failed metrics",
                    "Metrics that could not be computed, by their type in the spec.",
                    [
                        Query(
                            f"sum by (metric_type) (rate({CONTROLLER}_metric_computation_total"
                            f'{{{JOB}, error!="none"}}[$__rate_interval]))',
                            "{{metric_type}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Lateness of syncs",
                    "How long after it was due a sync began.",
                    _quantiles("podscaler_sync_lateness_seconds", JOB),
                    unit="s",
                ),
                Panel(
                    "Duration of syncs",
                    "With the reads of metrics and the writes of the scale and the status.",
                    _quantiles(f"{CONTROLLER}_reconciliation_duration_seconds", JOB),
                    unit="s",
                ),
                Panel(
                    "Work queue",
                    "Autoscalers that are due and wait for their sync.",
                    [Query(f'sum(workqueue_depth{{{JOB}, name="horizontalpodautoscaler"}})', "waiting")],
                ),
            ],
        ),
        (
            "Requests and resources",
            [
                Panel(
                    "Requests to the API server",
                    "By status code; <error> is a request without a response.",
                    [Query(f"sum by (code) (rate(rest_client_requests_total{{{JOB}}}[$__rate_interval]))", "{{code}}")],
                    unit="reqps",
                ),
                Panel(
                    "Duration of requests",
                    "Of all requests to the API server and the metrics APIs behind it.",
                    _quantiles("rest_client_request_duration_seconds", JOB),
                    unit="s",
                ),
                Panel(
                    "CPU",
                    "Cores that each process uses.",
                    [Query(f"rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval])", "{{instance}}")],
                ),
                Panel(
                    "Memory",
                    "Resident memory of each process.",
                    [Query(f"process_resident_memory_bytes{{{JOB}}}", "{{instance}}")],
                    unit="bytes",
                ),
                Panel(
                    "Failure policies",
                    "Syncs in which the failure policy of an autoscaler applied (docs/metric-failures.md).",
                    [
                        Query(
                            "sum by (response) (rate(podscaler_metric_failure_responses_total"
                            f"{{{JOB}}}[$__rate_interval]))",
                            "{{response}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Leaders by process",
                    "1: the process holds the Lease.",
                    [Query(f"leader_election_master_status{{{JOB}}}", "{{instance}} {{name}}")],
                    is_stepped=True,
                ),
            ],
        ),
        (
            "Adapter",
            [
                Panel(
                    "Requests to the adapter",
                    "By API group and status code.",
                    [
                        Query(
                            "sum by (group, code) (rate(podscaler_adapter_requests_total[$__rate_interval]))",
                            "{{group}} {{code}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Queries of the adapter",
                    "Requests to Prometheus by their result.",
                    [
                        Query(
                            "sum by (result) (rate(podscaler_adapter_prometheus_requests_total[$__rate_interval]))",
                            "{{result}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Rules with errors",
                    "Rules of the adapter that cannot be used, and failures of the last list.",
                    [Query("max(podscaler_adapter_rule_errors)", "errors")],
                ),
            ],
        ),
    ],
)

AUTOSCALER = Board(
    uid="podscaler-autoscaler",
    title="podscaler: autoscaler",
    description="The replicas of one autoscaler against its bounds, and its metrics against their targets.",
    variables=[
        Variable("namespace", "namespace", "kube_horizontalpodautoscaler_info", "namespace"),
        Variable(
            "autoscaler",
            "autoscaler",
            'kube_horizontalpodautoscaler_info{namespace="$namespace"}',
            "horizontalpodautoscaler",
        ),
    ],
    rows=[
        (
            "$namespace/$autoscaler",
            [
                Panel(
                    "Replicas",
                    "Current and desired replicas within minReplicas and maxReplicas.",
                    [
                        Query(
                            f"max({_series('status_current_replicas')})",
                            "current",
                        ),
                        Query(
                            f"max({_series('status_desired_replicas')})",
                            "desired",
                        ),
                        Query(f"max({_series('spec_min_replicas')})", "minimum"),
                        Query(f"max({_series('spec_max_replicas')})", "maximum"),
                    ],
                    width=16,
                    is_stepped=True,
                ),
                Panel(
                    "Desired by podscaler",
                    "What the last sync wants, at once and without kube-state-metrics.",
                    [
                        Query(
                            f'max({CONTROLLER}_desired_replicas{{namespace="$namespace", hpa_name="$autoscaler"}})',
                            "desired",
                        )
                    ],
                    is_stepped=True,
                ),
                Panel(
                    "Metrics against targets",
                    "The current value divided by its target: 1 is right, and the default tolerance is 0.1.",
                    [
                        Query(
                            "max by (metric_name, metric_target_type) ("
                            f"{_series('status_target_metric')}) / "
                            "max by (metric_name, metric_target_type) ("
                            f"{_series('spec_target_metric')})",
                            "{{metric_name}} ({{metric_target_type}})",
                        )
                    ],
                    width=16,
                ),
                Panel(
                    "Changes in an hour",
                    "How often the desired replicas rose and fell.",
                    [
                        Query(
                            f"max(resets({_series('status_desired_replicas')}[1h]))",
                            "down",
                        ),
                        Query(
                            f"max(changes({_series('status_desired_replicas')}[1h]))"
                            " - "
                            f"max(resets({_series('status_desired_replicas')}[1h]))",
                            "up",
                        ),
                    ],
                ),
                Panel(
                    "Values and targets",
                    "In the unit of each metric.",
                    [
                        Query(
                            f"max by (metric_name) ({_series('status_target_metric')})",
                            "{{metric_name}}",
                        ),
                        Query(
                            f"max by (metric_name) ({_series('spec_target_metric')})",
                            "target of {{metric_name}}",
                        ),
                    ],
                    width=16,
                ),
                Panel(
                    "Conditions",
                    "1 while the condition is True, as AbleToScale and ScalingActive should be.",
                    [
                        Query(
                            "max by (condition) (kube_horizontalpodautoscaler_status_condition"
                            f'{{{AUTOSCALER_LABELS}, status="true"}})',
                            "{{condition}}",
                        )
                    ],
                    is_stepped=True,
                ),
            ],
        )
    ],
)

BOARDS = {"podscaler-health.json": HEALTH, "podscaler-autoscaler.json": AUTOSCALER}


def model(board: Board) -> dict[str, Any]:
    """The board as Grafana imports it."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.description,
        "tags": ["podscaler", "autoscaling"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_datasource(), *(_variable(each) for each in board.variables)]},
        "panels": list(_panels(board.rows)),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.label})"
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "variable"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "includeAll": variable.has_all,
        "multi": variable.has_all,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if variable.has_all else {}),
    }


def _panels(rows: Sequence[tuple[str, Sequence[Panel]]]) -> Iterator[dict[str, Any]]:
    """Rows and panels with their places: panels fill a line from the left, and a line is as high as its first panel."""
    identity, y = 0, 0
    for title, panels in rows:
        identity += 1
        yield {
            "id": identity,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
            "panels": [],
        }
        y, x, height = y + 1, 0, 0
        for panel in panels:
            identity += 1
            if x + panel.width > COLUMNS:
                y, x = y + height, 0
            height = STAT_HEIGHT if panel.kind == "stat" else HEIGHT
            yield _panel(panel, identity, {"x": x, "y": y, "w": panel.width, "h": height})
            x += panel.width
        y += height


def _panel(panel: Panel, identity: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": query.expression,
            "legendFormat": query.legend,
        }
        for index, query in enumerate(panel.queries)
    ]
    custom = {"lineInterpolation": "stepAfter"} if panel.is_stepped else {}
    return {
        "id": identity,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {},
    }


def generated() -> dict[str, str]:
    """The text of each file, by its name."""
    return {name: json.dumps(model(board), indent=2) + "\n" for name, board in BOARDS.items()}


def main() -> None:
    """Write the files into the folder of the command line, by default the chart's."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generated().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
