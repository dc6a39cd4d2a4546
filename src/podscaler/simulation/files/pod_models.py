"""Makes the pods of a simulated workload from the template of its manifest and from its fields in the scenario.

Called by `workloads`. Requests, limits, sidecars, the initial delay of readiness probes and the termination grace
period are those of the template.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.machinery import quantity
from podscaler.simulation.files.documents import ManifestObject
from podscaler.simulation.files.file_fields import FileField
from podscaler.simulation.model.distributions import DurationDistribution, fixed
from podscaler.simulation.model.workloads import ContainerModel, PodModel

FIELDS = (
    "launch",
    "startup",
    "restart",
    "termination",
    "idleCPU",
    "idleMemory",
    "burst",
    "crashesPerHour",
    "containers",
)
"""The fields of a workload of a scenario that describe its pods."""

UCORES_PER_CORE = 1_000_000
_PERMILLE = 1000
_DEFAULT = PodModel(containers=())


def pod_model(manifest: ManifestObject, members: dict[str, FileField]) -> PodModel:
    """The pods of a workload.

    Args:
        members: the fields of the workload in the scenario by name; empty if the scenario does not mention it.

    Raises:
        UsageError: a field that cannot be used, or a template with resources of the whole pod.
    """
    pod_spec = (manifest.obj["spec"].get("template") or {}).get("spec") or {}
    if pod_spec.get("resources"):
        raise manifest.field.error("resources of the whole pod cannot be simulated; state those of its containers")
    burst_ucores, burst_ms = _read_burst(members)
    grace_ms = int(pod_spec.get("terminationGracePeriodSeconds", 30)) * 1000
    crashes = members.get("crashesPerHour")
    return PodModel(
        containers=tuple(_container_models(manifest, pod_spec, members)),
        launch=optional_distribution(members, "launch", _DEFAULT.launch),
        startup=_with_least_duration(
            optional_distribution(members, "startup", _DEFAULT.startup), _readiness_delay_ms(pod_spec)
        ),
        burst_ucores=burst_ucores,
        burst_ms=burst_ms,
        crashes_per_hour=0.0 if crashes is None else crashes.number(),
        restart=optional_distribution(members, "restart", _DEFAULT.restart),
        termination_ms=members["termination"].duration_ms() if "termination" in members else grace_ms,
    )


def _read_burst(members: dict[str, FileField]) -> tuple[int, int]:
    """The CPU of the start in millionths of a core, and its duration in ms; 0 for both without a burst."""
    if "burst" not in members:
        return 0, 0
    burst = members["burst"].members(("cpu", "for"))
    if len(burst) != 2:  # one of the two is missing
        raise members["burst"].error("a burst needs `cpu` and `for`, such as {cpu: 300m, for: 20s}")
    return burst["cpu"].scaled(UCORES_PER_CORE), burst["for"].duration_ms()


def optional_distribution(
    members: dict[str, FileField], name: str, default: DurationDistribution
) -> DurationDistribution:
    """The distribution of a field; `default` if the field is absent. Raises UsageError."""
    return read_distribution(members[name]) if name in members else default


def read_distribution(field: FileField) -> DurationDistribution:
    """The distribution of `20s`, `{uniform: [10s, 30s]}` or `{median: 20s, p95: 60s}`. Raises UsageError."""
    if not isinstance(field.value, dict):
        return fixed(field.duration_ms())
    members = field.members(("uniform", "median", "p95"))
    try:
        if set(members) == {"uniform"}:
            bounds = members["uniform"].elements()
            if len(bounds) != 2:  # a lower and an upper one
                raise members["uniform"].error("two durations are needed, such as [10s, 30s]")
            lower, upper = bounds
            return DurationDistribution("uniform", lower.duration_ms(), upper.duration_ms())
        if set(members) == {"median", "p95"}:
            return DurationDistribution("lognormal", members["median"].duration_ms(), members["p95"].duration_ms())
    except ValueError as error:
        raise field.error(str(error)) from None
    raise field.error("a duration, {uniform: [10s, 30s]}, or {median: 20s, p95: 60s} is needed")


def _with_least_duration(distribution: DurationDistribution, low_ms: int) -> DurationDistribution:
    """The distribution whose bounds are at least `low_ms`."""
    if distribution.kind == "fixed":
        return fixed(max(distribution.low_ms, low_ms))
    return DurationDistribution(distribution.kind, max(distribution.low_ms, low_ms), max(distribution.high_ms, low_ms))


def _readiness_delay_ms(pod_spec: dict[str, Any]) -> int:
    """The time from the start of the containers until all readiness probes of a pod may have succeeded.

    Args:
        pod_spec: the spec of the pod template, as JSON.
    """
    probes = [container.get("readinessProbe") or {} for container in pod_spec.get("containers") or ()]
    return 1000 * max((int(probe.get("initialDelaySeconds") or 0) for probe in probes), default=0)


def _counted_containers(pod_spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The containers whose usage counts: regular ones, then sidecars."""
    yield from pod_spec.get("containers") or ()
    for container in pod_spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            yield container


def _container_models(
    manifest: ManifestObject, pod_spec: dict[str, Any], members: dict[str, FileField]
) -> Iterator[ContainerModel]:
    """The containers that count, with requests, limits, idle usage and share of the load."""
    containers = list(_counted_containers(pod_spec))
    names = [container["name"] for container in containers]
    container_fields = members["containers"].members(names) if "containers" in members else {}
    members_by_container = {
        name: field.members(("idleCPU", "idleMemory", "load")) for name, field in container_fields.items()
    }
    shares = _load_shares(manifest, names, members_by_container, members.get("containers"))
    for index, container in enumerate(containers):
        name = container["name"]
        # Idle use that is stated for the pod is that of its first container.
        pod_members = members if index == 0 else {}
        container_members = pod_members | members_by_container.get(name, {})
        yield ContainerModel(
            name=name,
            requests_milli=_amounts_milli(container, "requests"),
            cpu_limit_milli=_amounts_milli(container, "limits").get("cpu"),
            idle_cpu_ucores=container_members["idleCPU"].scaled(UCORES_PER_CORE)
            if "idleCPU" in container_members
            else 0,
            idle_memory_bytes=container_members["idleMemory"].scaled(1) if "idleMemory" in container_members else 0,
            load_permille=shares[name],
        )


def _load_shares(
    manifest: ManifestObject,
    names: list[str],
    members_by_container: dict[str, dict[str, FileField]],
    field: FileField | None,
) -> dict[str, int]:
    """The shares of the load by container: the first one has all of it unless the scenario states shares."""
    permille_by_name = {
        name: round(container_members["load"].ratio() * _PERMILLE)
        for name, container_members in members_by_container.items()
        if "load" in container_members
    }
    if not permille_by_name:
        return {name: _PERMILLE if name == names[0] else 0 for name in names}
    if sum(permille_by_name.values()) != _PERMILLE:
        error_field = manifest.field if field is None else field
        raise error_field.error(
            f"the shares `load` of the containers sum up to {sum(permille_by_name.values()) / _PERMILLE:g}, not to 1"
        )
    return {name: permille_by_name.get(name, 0) for name in names}


def _amounts_milli(container: dict[str, Any], kind: str) -> dict[str, int]:
    """The `requests` or `limits` (`kind`) of a container of a manifest in thousandths, by resource."""
    quantities = (container.get("resources") or {}).get(kind) or {}
    return {name: quantity.parse(str(quantity_text)).milli_value() for name, quantity_text in quantities.items()}
