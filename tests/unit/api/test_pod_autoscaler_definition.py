"""The definition of PodAutoscaler: what is shipped, what it accepts, defaults and refuses."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podscaler.api.kinds.autoscaling import pod_autoscaler, pod_autoscaler_schema
from podscaler.api.schema import schema
from podscaler.cli.commands.crd import command

SHIPPED = Path(__file__).parents[3] / "deploy" / "crd" / "podautoscalers.yaml"


def test_what_is_shipped() -> None:
    """The file in deploy/crd is the first document that the command prints."""
    printed = CliRunner().invoke(command).output.split("---\n")[0]
    assert SHIPPED.read_text() == printed
    assert yaml.safe_load(printed) == pod_autoscaler.definition()


def _walk(node: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = [(path, node)]
    for name, child in (node.get("properties") or {}).items():
        found += _walk(child, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        found += _walk(node["items"], f"{path}[]")
    return found


@pytest.mark.parametrize("part", ["Spec", "Status"])
def test_all_fields(part: str) -> None:
    """Every field of autoscaling/v2 is there, however deep."""

    def names(message: str) -> set[str]:
        if message in schema.OPAQUE:
            return set()
        fields = list(schema.get_message(message).json_fields())
        deeper = [f"{field.name}.{name}" for field in fields if not field.is_scalar for name in names(field.type)]
        return {field.name for field in fields} | set(deeper)

    def properties(node: dict[str, Any]) -> set[str]:
        node = node.get("items", node)
        own = node.get("properties") or {}
        return set(own) | {f"{name}.{deep}" for name, child in own.items() for deep in properties(child)}

    have = properties(pod_autoscaler_schema.root()["properties"][part.lower()])
    ours = {each for each in have if each.partition(".")[0] == "onMetricFailure"}
    assert have - ours == names(f"autoscaling/v2.HorizontalPodAutoscaler{part}")


def test_our_own_fields() -> None:
    """The spec has one field that autoscaling/v2 has not."""
    node = pod_autoscaler_schema.root()["properties"]["spec"]["properties"]["onMetricFailure"]
    assert [path for path, _ in _walk(node, "onMetricFailure")] == [
        "onMetricFailure",
        "onMetricFailure.keepLastFor",
        "onMetricFailure.ignoreFailed",
        "onMetricFailure.fallback",
        "onMetricFailure.fallback.replicas",
        "onMetricFailure.fallback.after",
    ]


def test_every_node_is_structural() -> None:
    """Every node has a type, or is an integer or a text; every rule has a message; every list a kind."""
    for path, node in _walk(pod_autoscaler_schema.root()):
        assert node.get("type") or node.get("x-kubernetes-int-or-string"), path
        assert all(rule["message"] for rule in node.get("x-kubernetes-validations", [])), path


def test_it_is_made_anew() -> None:
    """Who changes what he got changes nothing for others."""
    first = pod_autoscaler.definition()
    kept = copy.deepcopy(first)
    _strip(first)
    assert pod_autoscaler.definition() == kept


def _strip(value: Any) -> None:
    strippers: dict[type, Callable[[Any], None]] = {dict: dict.clear, list: list.clear}
    if type(value) in strippers:
        for each in list(value.values() if isinstance(value, dict) else value):
            _strip(each)
        strippers[type(value)](value)
