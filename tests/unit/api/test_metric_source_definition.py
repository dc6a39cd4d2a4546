"""The definition of MetricSource: what is shipped, what it accepts, defaults and rejects."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podscaler.api.crd import records
from podscaler.api.kinds.apiextensions import crd_validation, customresourcedefinition
from podscaler.api.kinds.autoscaling import metric_source, metric_source_schema
from podscaler.cli.commands.crd import command

SHIPPED = Path(__file__).parents[3] / "deploy" / "crd" / "metricsources.yaml"
ADDRESS = {"address": "redis:6379"}
LIST = ADDRESS | {"list": "jobs"}


def faults(spec: dict[str, Any]) -> list[str]:
    """The errors of an API server about an object with that spec, after its defaults."""
    version = records.of(metric_source.definition()).stored
    obj: dict[str, Any] = {
        "apiVersion": "podscaler.dev/v1alpha1",
        "kind": "MetricSource",
        "metadata": {"name": "jobs", "namespace": "shop"},
        "spec": spec,
    }
    version.versions[0].default(obj)
    return [str(each) for each in version.strategy.validate(obj, None)]


def test_the_shipped_file() -> None:
    """The file in deploy/crd is the second document that the command prints."""
    printed = CliRunner().invoke(command).output.split("---\n")[1]
    assert SHIPPED.read_text() == printed
    assert yaml.safe_load(printed) == metric_source.definition()


def test_an_api_server_accepts_it() -> None:
    """Its schema is structural, and the cost of its rules has a bound."""
    definition = metric_source.definition()
    customresourcedefinition.set_defaults(definition)
    definition["status"] = {"storedVersions": [metric_source.VERSION]}
    assert crd_validation.validate(definition, None) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"prometheus": {"url": "http://prometheus:9090", "query": "sum(up)"}},
        {"redis": LIST},
        {"redis": ADDRESS | {"stream": {"key": "orders"}}},
        {"redis": ADDRESS | {"stream": {"key": "orders", "consumerGroup": "workers", "count": "Lag"}}},
        {"postgresql": {"host": "db", "database": "shop", "query": "SELECT count(*) FROM jobs"}},
        {"rabbitmq": {"host": "rabbit", "queue": "mails"}},
        {"nats": {"address": "nats:4222", "stream": "ORDERS", "consumer": "workers"}},
        {"kafka": {"bootstrapServers": ["kafka:9092"], "consumerGroup": "workers", "topic": "orders"}},
        {"http": {"url": "https://queue/stats", "jsonPath": "$.length"}},
        {"file": {"path": "length.json"}},
        {"cron": {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "insideValue": 10}},
        {"custom": {"type": "sqs", "settings": {"queue": {"name": "jobs"}}}},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_valid_specs(spec: dict[str, Any]) -> None:
    """One section is enough; everything else has a default."""
    assert faults(spec) == []


PAGE = Path(__file__).parents[3] / "docs" / "metric-sources.md"


def documented() -> list[dict[str, Any]]:
    """The specs of MetricSources in the documentation."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    objects = [obj for block in blocks for obj in yaml.safe_load_all(block)]
    return [obj["spec"] for obj in objects if obj.get("kind", "MetricSource") == "MetricSource"]


@pytest.mark.parametrize("spec", documented(), ids=lambda spec: next(iter(spec)))
def test_documented_specs(spec: dict[str, Any]) -> None:
    """An API server accepts them, and the systems are those of the definition."""
    assert faults(spec) == []


def test_each_system_is_documented() -> None:
    """With a manifest of its own."""
    assert {next(iter(spec)) for spec in documented()} == set(metric_source_schema.SYSTEM_TYPES)


ONE_OF = f"spec: Invalid value: must have exactly one of {', '.join(metric_source_schema.SYSTEM_TYPES)}"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({}, ONE_OF, id="no section"),
        pytest.param({"redis": LIST, "http": {"url": "http://queue"}}, ONE_OF, id="two sections"),
        pytest.param(
            {"redis": ADDRESS},
            "spec.redis: Invalid value: must have exactly one of list and stream",
            id="redis without a key",
        ),
        pytest.param(
            {"redis": ADDRESS | {"stream": {"key": "orders", "count": "Lag"}}},
            "spec.redis.stream: Invalid value: count Lag and Pending need a consumerGroup, count Length has none",
            id="a lag without a group",
        ),
        pytest.param(
            {"redis": LIST, "timeoutSeconds": 31},
            "spec.timeoutSeconds: Invalid value: 31: spec.timeoutSeconds in body should be less than or equal to 30",
            id="a long timeout",
        ),
        pytest.param(
            {"http": {"url": "http://user:password@queue"}},
            'spec.http.url: Invalid value: "http://user:password@queue": spec.http.url in body should match '
            "'^https?://[^@]+$'",
            id="credentials in a URL",
        ),
    ],
)
def test_invalid_specs(spec: dict[str, Any], found: str) -> None:
    """The API server rejects what cannot work."""
    assert faults(spec) == [found]
