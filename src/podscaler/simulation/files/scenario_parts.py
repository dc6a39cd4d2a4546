"""Reads the parts of a scenario that are not workloads: cluster, metrics, events, outages, expectations.

Called by `scenario_file`, with None for a part that the file does not have. A new field of a part: its name in the call
of `members`, and its value in the result. A new kind of event: a case in `read_events`, and a `ScenarioEvent`.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast, get_args

from podscaler.core.model import settings as core_settings
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.simulation.files import documents, loads, pod_models
from podscaler.simulation.files.documents import ManifestObject
from podscaler.simulation.files.file_fields import FileField, optional_duration_ms
from podscaler.simulation.files.loads import LoadContext
from podscaler.simulation.files.workloads import MILLI, find_key
from podscaler.simulation.model.expectations import Expectation, ExpectedValue
from podscaler.simulation.model.scenario import (
    ClusterModel,
    ManualScale,
    MetricFeed,
    MetricsOutage,
    MetricsServerModel,
    RolloutStart,
    ScenarioEvent,
    SpecEdit,
)

SYNC_PERIOD = "horizontal-pod-autoscaler-sync-period"
_FLAG_PREFIX = "horizontal-pod-autoscaler-"
_FLAGS = (
    SYNC_PERIOD,
    f"{_FLAG_PREFIX}tolerance",
    f"{_FLAG_PREFIX}downscale-stabilization",
    f"{_FLAG_PREFIX}cpu-initialization-period",
    f"{_FLAG_PREFIX}initial-readiness-delay",
    f"{_FLAG_PREFIX}upscale-delay",
    f"{_FLAG_PREFIX}downscale-delay",
    "feature-gates",
    "algorithm",
)
"""The flags that a scenario may state, by kube-controller-manager's names."""
_KINDS_WITHOUT_ROLLOUT = frozenset({"ReplicaSet", "ReplicationController"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioNames:
    """What the parts of a scenario may refer to.

    Attributes:
        workloads: manifests by key.
        autoscalers: parsed specs by key.
        settings: the controller's, for specs of edits.
    """

    workloads: dict[str, ManifestObject]
    autoscalers: dict[str, Spec]
    settings: Settings


def read_settings(flags: FileField | None, version: FileField | None) -> Settings:
    """The settings of the fields `flags` and `version` (the emulated version). Raises UsageError."""
    flag_values = {} if flags is None else {name: field.value for name, field in flags.members(_FLAGS).items()}
    error_field = version if flags is None else flags
    try:
        return core_settings.from_flags(flag_values, "1.37" if version is None else str(version.value))
    except ValueError as error:
        assert error_field is not None, "the defaults are valid"
        raise error_field.error(str(error)) from None


def read_metrics_server(field: FileField | None) -> MetricsServerModel:
    """The pipeline of resource metrics. Raises UsageError."""
    default = MetricsServerModel()
    if field is None:
        return default
    members = field.members(("resolution", "lag", "dropout"))
    return MetricsServerModel(
        resolution_ms=optional_duration_ms(members, "resolution", default.resolution_ms, low_ms=1000),
        lag_ms=optional_duration_ms(members, "lag", default.lag_ms),
        dropout_ratio=members["dropout"].ratio() if "dropout" in members else default.dropout_ratio,
    )


def read_cluster(field: FileField | None) -> ClusterModel | None:
    """The nodes; None: every pod finds room. Raises UsageError."""
    if field is None:
        return None
    members = field.members(("nodes", "maxNodes", "cpu", "memory", "provisioning", "idle"))
    for name in ("nodes", "cpu", "memory"):
        if name not in members:
            raise field.error(f"`{name}` is needed; cpu and memory are what pods can use of one node")
    nodes = members["nodes"].integer()
    nodes_max = members["maxNodes"].integer() if "maxNodes" in members else nodes
    if nodes_max < nodes:
        raise members["maxNodes"].error(f"maxNodes {nodes_max} is below nodes {nodes}")
    default = ClusterModel(nodes=nodes, max_nodes=nodes_max, cpu_milli=1, memory_bytes=1)  # for the other defaults
    return ClusterModel(
        nodes=nodes,
        max_nodes=nodes_max,
        cpu_milli=members["cpu"].scaled(MILLI),
        memory_bytes=members["memory"].scaled(1),
        provisioning=pod_models.optional_distribution(members, "provisioning", default.provisioning),
        idle_ms=optional_duration_ms(members, "idle", default.idle_ms),
    )


def read_feeds(field: FileField | None, context: LoadContext) -> Iterator[MetricFeed]:
    """The values of Pods, Object and External metrics. Raises UsageError."""
    feed_keys: set[tuple[str, str]] = set()
    for element in [] if field is None else field.elements():
        members = element.members(("name", "values", "sharing", "lag", "object"))
        for name in ("name", "values"):
            if name not in members:
                raise element.error(f"`{name}` is needed")
        feed = MetricFeed(
            metric=members["name"].text(),
            values=loads.read(members["values"], context, MILLI),
            sharing=cast("Any", members["sharing"].choice(("each", "shared"))) if "sharing" in members else "each",
            lag_ms=optional_duration_ms(members, "lag", 0),
            object_name=members["object"].text() if "object" in members else "",
        )
        if (feed.metric, feed.object_name) in feed_keys:
            raise element.error(f"the metric {feed.metric} has values twice")
        feed_keys.add((feed.metric, feed.object_name))
        yield feed


def read_events(field: FileField | None, names: ScenarioNames, context: LoadContext) -> Iterator[ScenarioEvent]:
    """What users do at instants. Raises UsageError."""
    for element in [] if field is None else field.elements():
        members = element.members(("at", "scale", "replicas", "rollout", "edit"))
        if "at" not in members:
            raise element.error("`at` is needed: the instant of the event")
        at_ms = members["at"].duration_ms()
        if at_ms > context.duration_ms:
            raise members["at"].error("the event is after the end of the scenario")
        match sorted(set(members) - {"at"}):
            case ["replicas", "scale"]:
                key = find_key(members["scale"], names.workloads)
                yield ManualScale(at_ms, key, members["replicas"].integer())
            case ["rollout"]:
                yield RolloutStart(at_ms, _read_rollout_workload(members["rollout"], names))
            case ["edit"]:
                yield SpecEdit(at_ms, _read_edited_spec(members["edit"], names, context))
            case _:
                raise element.error("an event is {at, scale, replicas}, {at, rollout}, or {at, edit}")


def _read_rollout_workload(field: FileField, names: ScenarioNames) -> str:
    """The key of the workload that is rolled out. Raises UsageError for a kind that has no rollouts."""
    key = find_key(field, names.workloads)
    if names.workloads[key].kind in _KINDS_WITHOUT_ROLLOUT:
        raise field.error(f"a {names.workloads[key].kind} does not replace pods when its template changes")
    return key


def _read_edited_spec(field: FileField, names: ScenarioNames, context: LoadContext) -> Spec:
    """The spec of an edited autoscaler, from a manifest within the scenario or a file of its own. Raises UsageError."""
    manifest_fields = documents.read_file(context.folder / field.text()) if isinstance(field.value, str) else [field]
    manifests = [manifest for document in manifest_fields for manifest in documents.objects(document)]
    if len(manifests) != 1 or manifests[0].key not in names.autoscalers:
        known_names = ", ".join(names.autoscalers)
        raise field.error(
            f"an edit is the manifest of one autoscaler of the scenario, which has {known_names or 'none'}"
        )
    (manifest,) = manifests
    return documents.parse_spec(manifest, names.settings)


def read_outages(field: FileField | None, metrics: Collection[str]) -> Iterator[MetricsOutage]:
    """The spans in which metrics cannot be read.

    Args:
        metrics: the names of resources and metrics that autoscalers read.

    Raises UsageError.
    """
    for element in [] if field is None else field.elements():
        members = element.members(("from", "to", "metric"))
        if "from" not in members or "to" not in members:
            raise element.error("`from` and `to` are needed")
        at_ms, until_ms = members["from"].duration_ms(), members["to"].duration_ms()
        if until_ms <= at_ms:
            raise members["to"].error("`to` is not after `from`")
        metric = members["metric"].choice(metrics) if "metric" in members else ""
        yield MetricsOutage(at_ms, until_ms, metric)


def read_expectations(field: FileField | None, workloads: Iterable[str], duration_ms: int) -> Iterator[Expectation]:
    """What the scenario expects, one expectation for each value of an element. Raises UsageError.

    Args:
        workloads: the keys of the workloads.
    """
    workload_keys = list(workloads)
    for element in [] if field is None else field.elements():
        members = element.members(("workload", "from", "to", *get_args(ExpectedValue)))
        if "workload" not in members:
            raise element.error("`workload` is needed")
        key = find_key(members["workload"], workload_keys)
        from_ms = optional_duration_ms(members, "from", 0)
        until_ms = optional_duration_ms(members, "to", duration_ms)
        if not from_ms <= until_ms <= duration_ms:
            raise element.error(
                "the span is not within the scenario: 0s, `from`, `to`, `duration` must be in this order"
            )
        value_names = [value_name for value_name in get_args(ExpectedValue) if value_name in members]
        if not value_names:
            raise element.error(f"nothing is expected; state one of {', '.join(get_args(ExpectedValue))}")
        for value_name in value_names:
            low, high = _read_bounds(members[value_name], value_name)
            yield Expectation(workload=key, value=value_name, low=low, high=high, from_ms=from_ms, until_ms=until_ms)


def _read_bounds(field: FileField, name: ExpectedValue) -> tuple[float | None, float | None]:
    """The lowest and the highest expected value, of `5` or `{min: 2, max: 5}`; None: no bound. Raises UsageError."""
    if not isinstance(field.value, dict):
        exact = _read_bound(field, name)
        return exact, exact
    members = field.members(("min", "max"))
    if not members:
        raise field.error("`min` or `max` is needed")
    low = _read_bound(members["min"], name) if "min" in members else None
    high = _read_bound(members["max"], name) if "max" in members else None
    if low is not None and high is not None and low > high:
        raise field.error("`min` is above `max`")
    return low, high


def _read_bound(field: FileField, name: ExpectedValue) -> float:
    """One bound: milliseconds for `latency`, a share for `lost`, else a count. Raises UsageError."""
    if name == "latency":
        return field.duration_ms()
    return field.ratio() if name == "lost" else field.integer()
