"""The chart's alerts: documented, parsed by promtool, and each fires when it should and not otherwise."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import prerequisites
from shipped_manifests import CHART, helm_template

PROMTOOL = shutil.which("promtool")
needs_promtool = prerequisites.PROMTOOL.mark(is_there=PROMTOOL is not None)
ALERTS_PAGE = CHART.parent.parent.parent / "docs" / "alerts.md"

CONTROLLER = "horizontal_pod_autoscaler_controller"
HPA = '{namespace="shop", horizontalpodautoscaler="web"}'
KSM = "kube_horizontalpodautoscaler"


def groups(**thresholds: Any) -> list[dict[str, Any]]:
    """The groups of rules that the chart makes."""
    values = {"prometheusRules": {"enabled": True, "thresholds": thresholds}}
    (rule,) = [each for each in helm_template(values=values) if each["kind"] == "PrometheusRule"]
    found: list[dict[str, Any]] = rule["spec"]["groups"]
    return found


def rules() -> dict[str, dict[str, Any]]:
    """The rules by name."""
    return {rule["alert"]: rule for group in groups() for rule in group["rules"]}


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of promtool."""
    return subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)


class Case(NamedTuple):
    """Series (with values as promtool expands them), and whether the alert fires with them after an hour."""

    alert: str
    series: dict[str, str]
    fires: bool


def _status(current: str, maximum: str, minimum: str = "2x60") -> dict[str, str]:
    return {
        f"{KSM}_status_current_replicas{HPA}": current,
        f"{KSM}_spec_max_replicas{HPA}": maximum,
        f"{KSM}_spec_min_replicas{HPA}": minimum,
    }


def _inactive(replicas: str) -> dict[str, str]:
    condition = f'{KSM}_status_condition{HPA[:-1]}, condition="ScalingActive", status="false"}}'
    return {condition: "1x60", f"{KSM}_status_current_replicas{HPA}": replicas}


def _lateness(within_1_s: str) -> dict[str, str]:
    name = "podscaler_sync_lateness_seconds_bucket"
    return {f'{name}{{le="1.0"}}': within_1_s, f'{name}{{le="30.0"}}': "0+60x60", f'{name}{{le="+Inf"}}': "0+60x60"}


def _computations(failed: str) -> dict[str, str]:
    name = f"{CONTROLLER}_metric_computation_total"
    return {
        f'{name}{{error="none", metric_type="Pods"}}': "0+90x60",
        f'{name}{{error="internal", metric_type="Pods"}}': failed,
    }


def _adapter(failed: str) -> dict[str, str]:
    name, group = "podscaler_adapter_requests_total", "custom.metrics.k8s.io"
    return {f'{name}{{group="{group}", code="200"}}': "0+90x60", f'{name}{{group="{group}", code="500"}}': failed}


DESIRED = f"{KSM}_status_desired_replicas{HPA}"
CASES = [
    Case("PodscalerDown", {"up": "0x60"}, fires=True),
    Case("PodscalerDown", {f"{CONTROLLER}_num_horizontal_pod_autoscalers": "3x60"}, fires=False),
    Case("PodscalerNoLeader", {'leader_election_master_status{instance="a"}': "0x60"}, fires=True),
    Case(
        "PodscalerNoLeader",
        {'leader_election_master_status{instance="a"}': "0x60", 'leader_election_master_status{instance="b"}': "1x60"},
        fires=False,
    ),
    Case("PodscalerAPIServerFault", {'podscaler_api_server_fault{fault="unreachable"}': "1x60"}, fires=True),
    Case("PodscalerAPIServerFault", {'podscaler_api_server_fault{fault="unreachable"}': "0x60"}, fires=False),
    Case("PodscalerSyncsLate", _lateness("0+30x60"), fires=True),
    Case("PodscalerSyncsLate", _lateness("0+60x60"), fires=False),
    Case("PodscalerMetricFailures", _computations("0+20x60"), fires=True),
    Case("PodscalerMetricFailures", _computations("0+1x60"), fires=False),
    Case("PodscalerPanics", {'podscaler_panics_total{part="sync"}': "0x50 1x10"}, fires=True),
    Case("PodscalerPanics", {'podscaler_panics_total{part="sync"}': "1x60"}, fires=False),
    Case("PodscalerRecordingLosesLines", {"podscaler_recording_lost_lines_total": "0x50 7x10"}, fires=True),
    Case("PodscalerRecordingLosesLines", {"podscaler_recording_lost_lines_total": "7x60"}, fires=False),
    Case("PodscalerAdapterErrors", _adapter("0+10x60"), fires=True),
    Case("PodscalerAdapterErrors", _adapter("0+1x60"), fires=False),
    Case("PodscalerAdapterRuleErrors", {"podscaler_adapter_rule_errors": "2x60"}, fires=True),
    Case("PodscalerAdapterRuleErrors", {"podscaler_adapter_rule_errors": "0x60"}, fires=False),
    Case("AutoscalerMetricsMissing", _inactive("3x60"), fires=True),
    Case("AutoscalerMetricsMissing", _inactive("0x60"), fires=False),
    Case("AutoscalerAtMaximum", _status("10x60", "10x60"), fires=True),
    Case("AutoscalerAtMaximum", _status("9x60", "10x60"), fires=False),
    Case("AutoscalerAtMaximum", _status("10x60", "10x60", minimum="10x60"), fires=False),
    Case("AutoscalerFlapping", {DESIRED: "2 6 2 6 2 6 2 6 2 6 2x50"}, fires=True),
    Case("AutoscalerFlapping", {DESIRED: "2 4 6 8 10 8 6 4 2x52"}, fires=True),
    Case("AutoscalerFlapping", {DESIRED: "2 6 2 6 2 6x55"}, fires=False),
]


@needs_promtool
def test_rules_are_valid(tmp_path: Path) -> None:
    """promtool accepts the rules, those with other thresholds too."""
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": groups(lateSeconds=0.5, atMaximumFor="2h")}))
    result = promtool("check", "rules", str(path))
    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{'fires' if case.fires else 'quiet'}")
def test_alert(case: Case, tmp_path: Path) -> None:
    """The alert fires for these series, or stays quiet; promtool evaluates the rule over an hour."""
    (tmp_path / "rules.json").write_text(json.dumps({"groups": groups()}))
    query = f'ALERTS{{alertname="{case.alert}", alertstate="firing"}}'
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [{"expr": f"count({query}) > 0 or vector(0)", "eval_time": "1h", "exp_samples": []}],
    }
    test["promql_expr_test"][0]["exp_samples"] = [{"labels": "{}", "value": 1 if case.fires else 0}]  # type: ignore[index] # a list
    (tmp_path / "test.json").write_text(json.dumps({"rule_files": ["rules.json"], "tests": [test]}))
    result = promtool("test", "rules", str(tmp_path / "test.json"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_both_cases() -> None:
    """No alert without a series that fires it, and one that does not."""
    for fires in (True, False):
        assert {case.alert for case in CASES if case.fires is fires} == set(rules())


def test_every_alert_is_documented() -> None:
    """Severity, words, and a section of the page with what to do."""
    sections = set(re.findall(r"^## (\w+)$", ALERTS_PAGE.read_text(), re.MULTILINE))
    assert sections == set(rules())
    for name, rule in rules().items():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"


def test_no_rules_by_default() -> None:
    """The value is off."""
    assert not [each for each in helm_template() if each["kind"] == "PrometheusRule"]
