"""The chart's Grafana dashboards: current, well formed, off by default, with expressions that are PromQL."""

import json
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import grafana_boards
import pytest

import prerequisites
from shipped_manifests import CHART, helm_template

FOLDER = CHART / "dashboards"
PROMTOOL = shutil.which("promtool")
NAMES = sorted(grafana_boards.BOARDS)
RATE_INTERVAL = "1m"


def panels(name: str) -> list[dict[str, Any]]:
    """The panels of a board that have queries."""
    board = json.loads((FOLDER / name).read_text())
    return [each for each in board["panels"] if each["type"] != "row"]


def expressions(name: str) -> list[str]:
    """The expressions of a board, with values in place of its variables."""
    values = {"$__rate_interval": RATE_INTERVAL, "$job": ".*", "$namespace": "shop", "$autoscaler": "web"}
    found = [target["expr"] for panel in panels(name) for target in panel["targets"]]
    for variable, value in values.items():
        found = [each.replace(variable, value) for each in found]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_current(name: str) -> None:
    """`make manifests` would change nothing."""
    assert (FOLDER / name).read_text() == grafana_boards.generated()[name]


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_ids_and_places_of_their_own(name: str) -> None:
    """No ID twice; no two panels at the same place; nothing beyond the grid."""
    board = json.loads((FOLDER / name).read_text())
    ids = [each["id"] for each in board["panels"]]
    assert len(set(ids)) == len(ids)
    places = [each["gridPos"] for each in board["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= grafana_boards.COLUMNS for place in places)
    overlapping = [
        (one, other)
        for one, other in combinations(places, 2)
        if one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    ]
    assert overlapping == []


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_says_what_it_shows(name: str) -> None:
    """A description, a unit, the chosen data source, and a name for each series."""
    for panel in panels(name):
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert all(target["legendFormat"] for target in panel["targets"])


@prerequisites.PROMTOOL.mark(is_there=PROMTOOL is not None)
@pytest.mark.parametrize("name", NAMES)
def test_expressions_are_promql(name: str, tmp_path: Path) -> None:
    """promtool parses each expression, as a recording rule."""
    rules = [{"record": f"panel:{index}", "expr": text} for index, text in enumerate(expressions(name))]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    result = subprocess.run([str(PROMTOOL), "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rules)} rules found" in result.stdout


def test_no_dashboards_by_default() -> None:
    """The value is off."""
    assert not [each for each in helm_template() if "dashboard" in each["metadata"]["name"]]


def test_the_config_maps() -> None:
    """Each board is a ConfigMap with the sidecar's label, in the namespace that is stated, with the file as it is."""
    values = {"grafana": {"dashboards": {"enabled": True, "namespace": "monitoring"}}}
    found = [each for each in helm_template(values=values) if "dashboard" in each["metadata"]["name"]]
    assert [(each["metadata"]["name"], each["metadata"]["namespace"]) for each in found] == [
        ("podscaler-dashboard-autoscaler", "monitoring"),
        ("podscaler-dashboard-health", "monitoring"),
    ]
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in found} == {"1"}
    texts = {name: text for each in found for name, text in each["data"].items()}
    assert {name: json.loads(text) for name, text in texts.items()} == {
        name: json.loads((FOLDER / name).read_text()) for name in NAMES
    }
