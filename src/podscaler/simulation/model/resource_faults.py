"""Finds why a resource metric of an autoscaler cannot be evaluated on the pods of a workload.

Called for the autoscalers of scenario files and for the candidates of a backtest, before the simulation: every
simulated sync would only report that it cannot read the metric.
"""

from podscaler.core.model.metric_spec import Metric, ResourceMetric, Utilization
from podscaler.simulation.model.workloads import WorkloadModel


def find_fault(metric: Metric, workload: WorkloadModel) -> str:
    """A sentence on the container or request that the pods lack; empty if they lack none or for another metric."""
    if not isinstance(metric, ResourceMetric):
        return ""
    containers = {container.name: container for container in workload.pod.containers}
    if metric.container and metric.container not in containers:
        return f"{workload.kind} {workload.key} has no container {metric.container}; it has {', '.join(containers)}"
    counted_containers = [containers[metric.container]] if metric.container else list(containers.values())
    containers_without_request = [
        container.name for container in counted_containers if metric.resource not in container.requests_milli
    ]
    if containers_without_request and isinstance(metric.target, Utilization):
        return (
            f"container {containers_without_request[0]} of {workload.key} has no {metric.resource} request, "
            "which averageUtilization needs"
        )
    return ""
