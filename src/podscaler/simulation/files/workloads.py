"""Makes simulated workloads of manifests and of the field `workloads` of a scenario.

Called by `scenario_file`; `scenario_parts` uses `find_key`. A new field of requests: its name in _REQUEST_FIELDS, and
its value in `_read_requests`; one of pods belongs to `pod_models`.
"""

from collections.abc import Iterable
from typing import Any

from podscaler.simulation.files import loads, pod_models
from podscaler.simulation.files.documents import NAMESPACE, ManifestObject
from podscaler.simulation.files.file_fields import FileField
from podscaler.simulation.files.loads import LoadContext
from podscaler.simulation.files.pod_models import UCORES_PER_CORE
from podscaler.simulation.model.workloads import RequestLoad, ResourceLoad, RolloutModel, WorkloadModel

KINDS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
MILLI = 1000
_REQUEST_FIELDS = (
    "rate",
    "cpuPerRequest",
    "timeout",
    "latency",
    "memoryPerRequest",
    "rateMetric",
    "queueMetric",
)
_NEVER = "never"
_US_PER_MS = 1000


def find_key(field: FileField, known_keys: Iterable[str]) -> str:
    """The key of the workload that a field names, as `web` or as `namespace/web`. Raises UsageError."""
    known_keys = list(known_keys)
    name = field.text()
    key = name if "/" in name else f"{NAMESPACE}/{name}"
    if key not in known_keys:
        matching_keys = [
            known_key for known_key in known_keys if "/" not in name and known_key.partition("/")[2] == name
        ]
        if len(matching_keys) != 1:
            raise field.error(f"the manifests have no workload {name}; they have {', '.join(known_keys) or 'none'}")
        return matching_keys[0]
    return key


def read_all(
    manifests: dict[str, ManifestObject], field: FileField | None, context: LoadContext
) -> tuple[WorkloadModel, ...]:
    """The workloads of all manifests, in their order, with the fields of the scenario. Raises UsageError.

    Args:
        manifests: key -> manifest.
        field: the field `workloads` of the scenario; None without one.
    """
    field_by_key: dict[str, FileField] = {}
    for name, member in (field.entries() if field is not None else {}).items():
        key = find_key(FileField(name, member.path, member.document), manifests)
        if key in field_by_key:
            raise member.error(f"the workload {key} is described twice")
        field_by_key[key] = member
    return tuple(_make_workload(manifest, field_by_key.get(key), context) for key, manifest in manifests.items())


def _make_workload(manifest: ManifestObject, field: FileField | None, context: LoadContext) -> WorkloadModel:
    """The model of a workload: its pods, the loads on them, and its rollouts."""
    members = field.members((*pod_models.FIELDS, "load")) if field is not None else {}
    load_fields = members["load"].members(("requests", "cpu", "memory")) if "load" in members else {}
    if "requests" in load_fields and "cpu" in load_fields:
        raise load_fields["cpu"].error("requests are a demand for CPU already; state `cpu` or `requests`")
    spec = manifest.obj["spec"]
    replicas = spec.get("replicas")
    demands = [
        ResourceLoad(resource=resource, total=loads.read(load_fields[resource], context, per_unit))
        for resource, per_unit in (("cpu", UCORES_PER_CORE), ("memory", 1))
        if resource in load_fields
    ]
    return WorkloadModel(
        key=manifest.key,
        kind=manifest.kind,
        replicas=1 if replicas is None else replicas,
        pod=pod_models.pod_model(manifest, members),
        requests=_read_requests(load_fields["requests"], context) if "requests" in load_fields else None,
        demands=tuple(demands),
        rollout=_rollout_model(manifest.kind, spec),
        is_ordered=manifest.kind == "StatefulSet" and spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady",
    )


def _read_requests(field: FileField, context: LoadContext) -> RequestLoad:
    """The requests that arrive, and what each of them costs. Raises UsageError."""
    members = field.members(_REQUEST_FIELDS)
    for name in ("rate", "cpuPerRequest"):
        if name not in members:
            raise field.error(f"`{name}` is needed")
    timeout_ms: int | None = 10_000
    if "timeout" in members:
        is_endless = members["timeout"].value == _NEVER
        timeout_ms = None if is_endless else members["timeout"].duration_ms(low_ms=1)
    return RequestLoad(
        rate=loads.read(members["rate"], context, MILLI),
        cpu_per_request_us=_read_cpu_time_us(members["cpuPerRequest"]),
        timeout_ms=timeout_ms,
        latency_ms=members["latency"].duration_ms() if "latency" in members else 0,
        memory_per_request_bytes=members["memoryPerRequest"].scaled(1) if "memoryPerRequest" in members else 0,
        rate_metric=members["rateMetric"].text() if "rateMetric" in members else "",
        queue_metric=members["queueMetric"].text() if "queueMetric" in members else "",
    )


def _read_cpu_time_us(field: FileField) -> int:
    """CPU time above 0: whole microseconds (`350us`), or the milliseconds of a duration (`20ms`). Raises UsageError."""
    time_text = str(field.value)
    if time_text.endswith(("us", "µs")) and time_text[:-2].isdigit() and int(time_text[:-2]):
        return int(time_text[:-2])
    return field.duration_ms(low_ms=1) * _US_PER_MS


def _rollout_model(kind: str, spec: dict[str, Any]) -> RolloutModel:
    """How many pods a rollout adds and takes away at once, from the manifest's `spec` and the kind's defaults.

    Differs: `updateStrategy` of a StatefulSet is ignored; its pods are always replaced one after another.
    """
    if kind == "StatefulSet":
        return RolloutModel(max_surge=0, max_unavailable=1)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return RolloutModel(max_surge=0, max_unavailable="100%")
    rolling_update = strategy.get("rollingUpdate") or {}
    return RolloutModel(
        max_surge=rolling_update.get("maxSurge", "25%"), max_unavailable=rolling_update.get("maxUnavailable", "25%")
    )
