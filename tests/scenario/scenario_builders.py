"""Short ways to say autoscalers and worlds in scenario tests, on top of `podscaler.testing.decisions`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.core.model.spec import Spec
from podscaler.testing import decisions, scenario
from podscaler.testing.decisions import Json
from podscaler.testing.scenario import Scenario
from podscaler.testing.scenario_meters import Meter
from podscaler.testing.scenario_target import ONE_CPU, ScenarioTarget


def cpu(pct: int) -> Json:
    """A target of so many percent of the requested CPU."""
    return decisions.resource(utilization=pct)


def of_object(name: str, *, value: str | None = None, average: str | None = None, kind: str = "Ingress") -> Json:
    """A target for a custom metric of one object."""
    entry = decisions.object_metric(value=value, average=average)
    described = {"kind": kind, "name": "main-route", "apiVersion": "v1"}
    return {"type": "Object", "object": entry["object"] | {"metric": {"name": name}, "describedObject": described}}


def external(name: str, *, value: str | None = None, average: str | None = None) -> Json:
    """A target for an external metric."""
    entry = decisions.external_metric(value=value, average=average)
    return {"type": "External", "external": entry["external"] | {"metric": {"name": name}}}


def autoscaler(
    *metrics: Json,
    least: int = 1,
    most: int = 10,
    behavior: Json | None = None,
    name: str = "web",
    kind: str = "Deployment",
) -> Spec:
    """An autoscaler of the target `web`."""
    target_ref = {"kind": kind, "name": "web", "apiVersion": "apps/v1"}
    spec = decisions.scaler(*metrics, least=least, most=most, behavior=behavior, target_ref=target_ref)
    return msgspec.structs.replace(spec, key=f"default/{name}", name=name)


def world(
    scaler: Spec,
    replicas: int,
    *meters: Meter,
    containers: Mapping[str, Mapping[str, int]] = ONE_CPU,
    ready_after_s: float = 0,
    **rest: Any,
) -> Scenario:
    """A scenario whose target begins with so many pods; `rest` goes to `Scenario`."""
    target = ScenarioTarget(replicas, start=scenario.START, containers=containers, ready_after_s=ready_after_s)
    return Scenario(scaler, target, *meters, **rest)


def app(**requests_milli: int) -> Mapping[str, Mapping[str, int]]:
    """Pods with one container `app` that requests so much."""
    return {"app": requests_milli}
