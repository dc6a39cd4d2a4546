"""Autoscalers are read into facts once for each spec."""

from typing import Any

import msgspec
import pytest

from podscaler.controller.informers import observed_objects
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.core.model import spec
from podscaler.core.model.settings import Settings
from podscaler.kube.informers.reflector import WatchSource


def _raw(*, replicas: int = 0, name: str = "web", maximum: int = 10) -> msgspec.Raw:
    queue = {"metric": {"name": "depth", "selector": {"matchLabels": {"app": name}}}}
    document: dict[str, Any] = {
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": str(replicas)},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "maxReplicas": maximum,
            "metrics": [{"type": "External", "external": queue | {"target": {"type": "Value", "value": "5"}}}],
        },
        "status": {"currentReplicas": replicas, "desiredReplicas": replicas},
    }
    return msgspec.Raw(msgspec.json.encode(document))


def _source() -> WatchSource[Autoscaler]:
    return observed_objects.autoscaler_source(Settings())


def test_a_new_status_has_the_facts_of_the_old() -> None:
    """The facts of the spec are the same object while the spec is the same; the rest is new."""
    read = _source().read
    before, after = read(_raw()), read(_raw(replicas=3))
    assert (after.spec is before.spec, after.wire.status.current_replicas) == (True, 3)


def test_a_new_spec_is_read() -> None:
    """And so is that of another autoscaler with the same one."""
    read = _source().read
    first, edited, other = read(_raw()), read(_raw(maximum=11)), read(_raw(name="api"))
    assert [first.spec, edited.spec, other.spec] == [spec.of(each.wire) for each in (first, edited, other)]
    assert (edited.spec.max_replicas, other.spec.name) == (11, "api")


def test_a_deleted_autoscaler_is_forgotten() -> None:
    """Facts are kept by who uses them only."""
    read = _source().read
    facts = read(_raw()).spec
    assert read(_raw()).spec is not facts


TARGETS = "alpha/target.custom-metrics.podautoscaler.kubernetes.io"
QPS = '{"items": [{"name": "qps", "value": "10"}]}'


def _annotated(text: str) -> msgspec.Raw:
    """An autoscaler without metrics and with this annotation."""
    document = msgspec.json.decode(_raw())
    document["metadata"]["annotations"] = {TARGETS: text}
    del document["spec"]["metrics"]
    return msgspec.Raw(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("algorithm", "names"),
    [("current", ["cpu resource utilization (percentage of request)"]), ("v1.1", ["pods metric qps"])],
)
def test_the_annotation_of_custom_metrics(algorithm: str, names: list[str]) -> None:
    """The algorithm of the first releases reads it; the current one does not."""
    read = observed_objects.autoscaler_source(Settings(algorithm=algorithm)).read
    found = read(_annotated(QPS))
    assert ([metric.name for metric in found.spec.metrics], found.fault) == (names, "")


def test_an_annotation_that_cannot_be_read_is_a_fault() -> None:
    """The autoscaler then decides nothing, and its conditions have the reason."""
    read = observed_objects.autoscaler_source(Settings(algorithm="v1.1")).read
    text = "items[0].value must be a quantity: quantities must match the regular expression"
    assert read(_annotated(QPS.replace("10", "ten"))).fault.startswith(f'metadata.annotations["{TARGETS}"] {text}')
