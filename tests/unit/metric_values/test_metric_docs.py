"""The examples in docs/metrics.md are entries that work."""

import re
from pathlib import Path

import yaml

from podscaler.api.kinds import catalog
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.parsing import EntryContext, parse_entry

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_examples_have_no_faults() -> None:
    """Every ConfigMap of the documentation can be read, and states the metrics that it seems to."""
    blocks = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    config_maps = [each for each in map(yaml.safe_load, blocks) if each.get("kind") == "ConfigMap"]
    metrics = []
    for config_map in config_maps:
        api = config_map["metadata"]["labels"]["podscaler.dev/metrics"]
        place = EntryContext(api, "default", 0, DescribableKinds(catalog.RESOURCES))
        for key, text in config_map["data"].items():
            outcome = parse_entry(key, text, place)
            assert outcome.problems == ()
            metrics += [series.metric for series in outcome.series]
    assert metrics == [
        "http_requests",
        "http_requests_total",
        "connections",
        "orders",
        "lag",
        "sessions",
        "temperature",
        "jobs",
        "jobs",
        "jobs",
    ]
