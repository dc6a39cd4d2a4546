"""A scenario file becomes the whole input of a simulation."""

from pathlib import Path

import pytest

from podscaler.core.model.settings import Settings
from podscaler.simulation.model.distributions import DurationDistribution, fixed
from podscaler.simulation.model.expectations import Expectation
from podscaler.simulation.model.scenario import (
    ClusterModel,
    ManualScale,
    MetricFeed,
    MetricsOutage,
    MetricsServerModel,
    RolloutStart,
    SpecEdit,
)
from podscaler.simulation.model.step_series import constant
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, RolloutModel, WorkloadModel
from unit.simulation.scenario_texts import AUTOSCALER, CPU, DEPLOYMENT, read

MI = 1 << 20


def test_defaults_are_those_of_the_model(tmp_path: Path) -> None:
    scenario = read(tmp_path).scenario
    assert scenario.settings == Settings()
    assert scenario.metrics_server == MetricsServerModel()
    assert (scenario.sync_period_ms, scenario.duration_ms, scenario.seed, scenario.cluster) == (
        15_000,
        600_000,
        0,
        None,
    )
    assert [each.workload for each in scenario.autoscalers] == ["default/web"]
    assert scenario.workloads[0].pod == PodModel(
        containers=(ContainerModel(name="app", requests_milli={"cpu": 200}, cpu_limit_milli=500),),
        termination_ms=30_000,
    )


WORKLOAD = """\
duration: 10m
workloads:
  web:
    launch: {uniform: [1s, 3s]}
    startup: {median: 20s, p95: 60s}
    restart: 5s
    termination: 1s
    idleCPU: 5m
    idleMemory: 64Mi
    burst: {cpu: 300m, for: 20s}
    crashesPerHour: 0.5
    load:
      requests:
        {rate: 50, cpuPerRequest: 350us, timeout: never, latency: 2ms, memoryPerRequest: 1Mi, rateMetric: rps,
         queueMetric: waiting}
      memory: 1Gi
"""


def test_a_workload_is_its_manifest_and_what_the_scenario_says_of_it(tmp_path: Path) -> None:
    container = ContainerModel(
        name="app",
        requests_milli={"cpu": 200},
        cpu_limit_milli=500,
        idle_cpu_ucores=5_000,
        idle_memory_bytes=64 * MI,
    )
    found = read(tmp_path, WORKLOAD).scenario.workloads[0]
    assert found.pod == PodModel(
        containers=(container,),
        launch=DurationDistribution("uniform", 1_000, 3_000),
        startup=DurationDistribution("lognormal", 20_000, 60_000),
        restart=fixed(5_000),
        burst_ucores=300_000,
        burst_ms=20_000,
        crashes_per_hour=0.5,
        termination_ms=1_000,
    )
    assert found.requests == RequestLoad(
        rate=constant(50_000),
        cpu_per_request_us=350,
        timeout_ms=None,
        latency_ms=2,
        memory_per_request_bytes=MI,
        rate_metric="rps",
        queue_metric="waiting",
    )
    assert [(each.resource, each.total) for each in found.demands] == [("memory", constant(1 << 30))]


def stateful(replicas: int, policy: str) -> str:
    return DEPLOYMENT.replace("Deployment", "StatefulSet").replace(
        "spec:\n  selector",
        f"spec:\n  serviceName: web\n  replicas: {replicas}\n  podManagementPolicy: {policy}\n  selector",
    ) + AUTOSCALER.replace("Deployment", "StatefulSet")


@pytest.mark.parametrize(("policy", "is_ordered"), [("OrderedReady", True), ("Parallel", False)])
def test_a_stateful_set_may_make_pods_one_after_another(policy: str, is_ordered: bool, tmp_path: Path) -> None:
    found = read(tmp_path, manifests=stateful(3, policy)).scenario.workloads[0]
    assert (found.kind, found.replicas, found.is_ordered) == ("StatefulSet", 3, is_ordered)
    assert found.rollout == RolloutModel(max_surge=0, max_unavailable=1)


def workload_with(manifest_fields: str, tmp_path: Path) -> WorkloadModel:
    manifest = DEPLOYMENT.replace("spec:\n  selector", f"spec:\n  {manifest_fields}\n  selector")
    return read(tmp_path, manifests=manifest + AUTOSCALER).scenario.workloads[0]


@pytest.mark.parametrize(
    ("strategy", "rollout"),
    [
        ("strategy: {}", RolloutModel()),
        ("strategy: {type: Recreate}", RolloutModel(max_surge=0, max_unavailable="100%")),
        ("strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}", RolloutModel(max_surge=2, max_unavailable=0)),
    ],
)
def test_the_strategy_of_a_deployment_counts(strategy: str, rollout: RolloutModel, tmp_path: Path) -> None:
    assert workload_with(strategy, tmp_path).rollout == rollout


def test_the_initial_delay_of_a_readiness_probe_is_the_least_startup(tmp_path: Path) -> None:
    probe = "image: web, readinessProbe: {httpGet: {port: 80}, initialDelaySeconds: 30}"
    manifest = DEPLOYMENT.replace("image: web", probe) + AUTOSCALER
    assert read(tmp_path, manifests=manifest).scenario.workloads[0].pod.startup == fixed(30_000)


def test_a_sidecar_counts_and_shares_are_stated_by_container(tmp_path: Path) -> None:
    proxy = "{name: proxy, image: p, restartPolicy: Always, resources: {requests: {cpu: 100m}}}"
    sidecar = f"      initContainers:\n        - {proxy}\n"
    shares = "{app: {load: 80%}, proxy: {load: 0.2, idleCPU: 1m}}"
    body = f"duration: 1m\nworkloads: {{web: {{load: {{cpu: 1}}, containers: {shares}}}}}\n"
    found = read(tmp_path, body, DEPLOYMENT + sidecar + AUTOSCALER).scenario.workloads[0].pod.containers
    assert [(each.name, each.load_permille, each.idle_cpu_ucores) for each in found] == [
        ("app", 800, 0),
        ("proxy", 200, 1_000),
    ]


PARTS = (
    CPU
    + """\
seed: 7
syncPeriod: 30s
firstSync: 5s
actuation: 2s
version: "1.38"
flags: {horizontal-pod-autoscaler-tolerance: 0.2, horizontal-pod-autoscaler-downscale-stabilization: 1m}
metricsServer: {resolution: 60s, lag: 2s, dropout: 5%}
cluster: {nodes: 2, maxNodes: 4, cpu: 3900m, memory: 14Gi, provisioning: 2m, idle: 5m}
metrics:
- {name: queue, values: 5, lag: 10s, sharing: shared, object: Service/web}
events:
- {at: 1m, scale: web, replicas: 3}
- {at: 2m, rollout: default/web}
- at: 3m
  edit:
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: web}
    spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 20}
outages: [{from: 4m, to: 5m, metric: cpu}, {from: 6m, to: 7m}]
expect:
- {workload: web, replicas: 3, ready: {max: 4}, from: 1m, to: 2m}
- {workload: web, latency: {max: 200ms}, lost: {max: 1%}}
"""
)


def test_all_parts_of_a_scenario_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, PARTS)
    scenario = found.scenario
    assert (scenario.seed, scenario.sync_period_ms, scenario.first_sync_ms, scenario.actuation_ms) == (
        7,
        30_000,
        5_000,
        2_000,
    )
    assert scenario.settings.tolerance == 0.2
    assert scenario.settings.emulation.version == "1.38"
    assert scenario.metrics_server == MetricsServerModel(resolution_ms=60_000, lag_ms=2_000, dropout_ratio=0.05)
    assert scenario.cluster == ClusterModel(
        nodes=2, max_nodes=4, cpu_milli=3_900, memory_bytes=14 << 30, provisioning=fixed(120_000), idle_ms=300_000
    )
    feed = MetricFeed(
        metric="queue", values=constant(5_000), sharing="shared", lag_ms=10_000, object_name="Service/web"
    )
    assert scenario.feeds == (feed,)
    assert scenario.events[:2] == (ManualScale(60_000, "default/web", 3), RolloutStart(120_000, "default/web"))
    edit = scenario.events[2]
    assert isinstance(edit, SpecEdit)
    assert edit.spec.max_replicas == 20
    assert scenario.outages == (MetricsOutage(240_000, 300_000, "cpu"), MetricsOutage(360_000, 420_000))
    web = "default/web"
    assert found.expectations == (
        Expectation(workload=web, value="replicas", low=3, high=3, from_ms=60_000, until_ms=120_000),
        Expectation(workload=web, value="ready", high=4, from_ms=60_000, until_ms=120_000),
        Expectation(workload=web, value="latency", high=200, until_ms=600_000),
        Expectation(workload=web, value="lost", high=0.01, until_ms=600_000),
    )


def test_a_seed_of_the_caller_replaces_that_of_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, PARTS, seed=9).scenario.seed == 9


def test_manifests_may_be_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT + AUTOSCALER)
    assert read(tmp_path, CPU + "manifests: [web.yaml]\n", "") == read(tmp_path)


V2 = {
    "autoscaling/v2": "target: {type: Utilization, averageUtilization: 50}",
    "autoscaling/v2beta2": "target: {type: Utilization, averageUtilization: 50}",
    "autoscaling/v2beta1": "targetAverageUtilization: 50",
    "autoscaling/v2alpha1": "targetAverageUtilization: 50",
}


@pytest.mark.parametrize("version", V2)
def test_every_version_of_an_autoscaler_is_the_same(version: str, tmp_path: Path) -> None:
    metrics = f"  metrics: [{{type: Resource, resource: {{name: cpu, {V2[version]}}}}}]\n"
    manifest = AUTOSCALER.replace("autoscaling/v1", version).replace("  targetCPUUtilizationPercentage: 50\n", metrics)
    assert read(tmp_path, manifests=DEPLOYMENT + manifest) == read(tmp_path)


def test_the_first_version_of_an_autoscaler_is_the_same(tmp_path: Path) -> None:
    manifest = """\
---
apiVersion: extensions/v1beta1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleRef: {apiVersion: apps/v1, kind: Deployment, name: web, subresource: scale}
  maxReplicas: 10
  cpuUtilization: {targetPercentage: 50}
"""
    assert read(tmp_path, manifests=DEPLOYMENT + manifest) == read(tmp_path)
