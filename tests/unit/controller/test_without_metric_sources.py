"""The controller on a cluster that does not know MetricSources: it works as before, and is quiet about it."""

import logging

import pytest

from podscaler.testing.autoscaling import AutoscalerWorld

PATH = "/apis/podscaler.dev/v1alpha1/metricsources"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs"
METRIC = {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "5"}}


async def test_external_metrics_come_from_their_api(caplog: pytest.LogCaptureFixture) -> None:
    """The definition is looked for every few seconds, without a line in the log."""
    caplog.set_level(logging.INFO)
    world = AutoscalerWorld(metric_sources=True)
    world.add_web(metrics=[{"type": "External", "external": METRIC}])
    await world.start()
    await world.advance(60)
    looked_for = len([request for request in world.cluster.requests if request.path == PATH])
    await world.close()
    assert EXTERNAL in {request.path for request in world.cluster.requests}
    assert (5 < looked_for < 20, [text for text in caplog.messages if "metricsource" in text]) == (True, [])


async def test_the_flag_switches_it_off() -> None:
    """Then nothing is requested."""
    world = AutoscalerWorld(metric_sources=False)
    world.add_web()
    await world.start()
    await world.advance(60)
    await world.close()
    assert PATH not in {request.path for request in world.cluster.requests}
