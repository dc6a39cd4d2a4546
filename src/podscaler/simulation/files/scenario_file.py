"""Reads a scenario file: the scenario itself and the manifests of autoscalers and workloads.

Called by `podscaler simulate`, `backtest` and `tune`. docs/scenario-file.md lists all fields. A new field: its name in
_FIELDS, its value in `_ScenarioReader.read`, and the function in `scenario_parts` that reads it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core.model.metric_spec import IdentifiedMetric, Metric, ResourceMetric
from podscaler.core.model.spec import Spec
from podscaler.simulation.files import documents, scenario_parts, workloads
from podscaler.simulation.files.documents import ManifestObject
from podscaler.simulation.files.file_fields import FileField, optional_duration_ms
from podscaler.simulation.files.loads import LoadContext, RangeQuery
from podscaler.simulation.files.scenario_parts import ScenarioNames
from podscaler.simulation.metric_feeds import MetricFeeds
from podscaler.simulation.model import resource_faults
from podscaler.simulation.model.expectations import Expectation
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario, SpecEdit
from podscaler.simulation.model.workloads import WorkloadModel

_FIELDS = (
    "apiVersion",
    "kind",
    "metadata",
    "manifests",
    "duration",
    "seed",
    "syncPeriod",
    "firstSync",
    "actuation",
    "flags",
    "version",
    "metricsServer",
    "cluster",
    "workloads",
    "metrics",
    "events",
    "outages",
    "expect",
)


class ScenarioFile(msgspec.Struct, frozen=True):
    """The content of a scenario file.

    Attributes:
        expectations: what the file expects of the result, in its order.
        wires: the specs of the autoscalers in the API's form (autoscaling/v2), which candidates change, by their keys.
    """

    scenario: SimulationScenario
    expectations: tuple[Expectation, ...]
    wires: Mapping[str, HorizontalPodAutoscalerSpec]


def read(path: Path, *, seed: int | None = None, range_query: RangeQuery | None = None) -> ScenarioFile:
    """The scenario of a file.

    Args:
        path: of a file of YAML or JSON with one document of kind Scenario, and any number of manifests.
        seed: in place of the file's; None: the file's.
        range_query: queries Prometheus; None: its loads are errors.

    Raises:
        UsageError: the sentence names file, line and field.
    """
    fields = documents.read_file(path)
    scenarios = [field for field in fields if documents.is_scenario(field)]
    if len(scenarios) != 1:
        count = len(scenarios) or "no"
        raise UsageError(
            f"{path} has {count} documents of kind {documents.KIND} ({documents.API_VERSION}); one is needed"
        )
    (scenario,) = scenarios
    manifest_fields = [field for field in fields if field is not scenario]
    return _ScenarioReader(scenario, manifest_fields, path.parent, seed, range_query).read()


class _ScenarioReader:
    """Reads the document of kind Scenario, with the objects of all manifests by kind and key.

    Args:
        root: the document.
        manifest_fields: the other documents of the file.
        folder: of the file, to which names of other files are relative.
        seed: in place of the file's; None: the file's.
    """

    def __init__(
        self,
        root: FileField,
        manifest_fields: list[FileField],
        folder: Path,
        seed: int | None,
        range_query: RangeQuery | None,
    ) -> None:
        self._root = root
        self._members = root.members(_FIELDS)
        if "duration" not in self._members:
            raise root.error("`duration` is needed, such as 30m")
        file_seed = self._members["seed"].integer() if "seed" in self._members else 0
        self._context = LoadContext(
            folder=folder,
            duration_ms=self._members["duration"].duration_ms(low_ms=1000),
            seed=file_seed if seed is None else seed,
            range_query=range_query,
        )
        self._manifests = _index_manifests([*manifest_fields, *self._read_manifest_files()])

    def read(self) -> ScenarioFile:
        """The scenario, after all names in it have been found. Raises UsageError."""
        members, context = self._members, self._context
        settings = scenario_parts.read_settings(members.get("flags"), members.get("version"))
        workload_manifests = {
            key: manifest for (kind, key), manifest in self._manifests.items() if kind in workloads.KINDS
        }
        autoscaler_manifests = [manifest for (kind, _), manifest in self._manifests.items() if kind == conversion.KIND]
        specs = {autoscaler.key: documents.parse_spec(autoscaler, settings) for autoscaler in autoscaler_manifests}
        names = ScenarioNames(workloads=workload_manifests, autoscalers=specs, settings=settings)
        workload_models = {
            workload.key: workload
            for workload in workloads.read_all(workload_manifests, members.get("workloads"), context)
        }
        autoscaler_models = tuple(
            _bind_to_workload(autoscaler, specs[autoscaler.key], workload_models) for autoscaler in autoscaler_manifests
        )
        events = tuple(scenario_parts.read_events(members.get("events"), names, context))
        edited_specs = [event.spec for event in events if isinstance(event, SpecEdit)]
        for edited_spec in edited_specs:
            self._check_edit(edited_spec, autoscaler_models, workload_models)
        all_specs = [*specs.values(), *edited_specs]
        default = SimulationScenario(workloads=(), autoscalers=(), duration_ms=1)  # for the defaults of its fields
        scenario = SimulationScenario(
            workloads=tuple(workload_models.values()),
            autoscalers=autoscaler_models,
            duration_ms=context.duration_ms,
            feeds=tuple(scenario_parts.read_feeds(members.get("metrics"), context)),
            metrics_server=scenario_parts.read_metrics_server(members.get("metricsServer")),
            cluster=scenario_parts.read_cluster(members.get("cluster")),
            settings=settings,
            sync_period_ms=self._sync_period_ms(default.sync_period_ms),
            first_sync_ms=self._duration_ms("firstSync", default.first_sync_ms),
            actuation_ms=self._duration_ms("actuation", default.actuation_ms),
            events=events,
            outages=tuple(scenario_parts.read_outages(members.get("outages"), _metric_names(all_specs))),
            seed=context.seed,
        )
        self._check_scenario(scenario)
        expectations = scenario_parts.read_expectations(members.get("expect"), workload_models, context.duration_ms)
        wires = {autoscaler.key: documents.wire_spec(autoscaler) for autoscaler in autoscaler_manifests}
        return ScenarioFile(scenario, tuple(expectations), wires)

    def _read_manifest_files(self) -> Iterable[FileField]:
        for name in self._members["manifests"].elements() if "manifests" in self._members else []:
            yield from documents.read_file(self._context.folder / name.text())

    def _duration_ms(self, name: str, default_ms: int) -> int:
        return optional_duration_ms(self._members, name, default_ms)

    def _sync_period_ms(self, default_ms: int) -> int:
        """The sync period of the field `syncPeriod`, or else of the controller's flag."""
        flags = self._members.get("flags")
        flag = flags.entries().get(scenario_parts.SYNC_PERIOD) if flags is not None else None
        field = self._members.get("syncPeriod", flag)
        return default_ms if field is None else field.duration_ms(low_ms=1000)

    def _check_edit(
        self,
        edited_spec: Spec,
        autoscaler_models: Iterable[AutoscalerModel],
        workload_models: dict[str, WorkloadModel],
    ) -> None:
        """Raises UsageError if an edited autoscaler cannot be evaluated on its workload."""
        key = next(autoscaler.workload for autoscaler in autoscaler_models if autoscaler.spec.key == edited_spec.key)
        for metric in edited_spec.metrics:
            if fault := _find_metric_fault(metric, workload_models[key]):
                raise self._members["events"].error(f"the edited autoscaler {edited_spec.name}: {fault}")

    def _check_scenario(self, scenario: SimulationScenario) -> None:
        """Raises UsageError if the scenario has nothing to simulate, or lacks the values of a metric."""
        if not scenario.autoscalers:
            raise self._root.error(f"the manifests have no {conversion.KIND}; at least one is needed")
        try:
            MetricFeeds(scenario)
        except ValueError as error:
            raise self._root.error(f"{error}; state them under `metrics`") from None


def _index_manifests(fields: Iterable[FileField]) -> dict[tuple[str, str], ManifestObject]:
    """The objects of all manifests by kind and key; workloads have one key space. Raises UsageError."""
    manifests_by_key: dict[tuple[str, str], ManifestObject] = {}
    for document in fields:
        if documents.is_scenario(document):
            raise document.error(f"a manifest of kind {documents.KIND} within another one is not possible")
        for manifest in documents.objects(document):
            is_workload = manifest.kind in workloads.KINDS
            kinds = workloads.KINDS if is_workload else (manifest.kind,)
            if any((kind, manifest.key) in manifests_by_key for kind in kinds):
                raise manifest.field.error(
                    f"there is another {'workload' if is_workload else manifest.kind} {manifest.key}"
                )
            manifests_by_key[manifest.kind, manifest.key] = manifest
    return manifests_by_key


def _bind_to_workload(manifest: ManifestObject, spec: Spec, models: dict[str, WorkloadModel]) -> AutoscalerModel:
    """The autoscaler with its workload. Raises UsageError if there is no such workload, or a metric has no values."""
    reference = manifest.obj["spec"]["scaleTargetRef"]
    model = models.get(f"{manifest.namespace}/{reference.get('name')}")
    target_field = FileField(None, f"{manifest.field.path}.spec.scaleTargetRef".lstrip("."), manifest.field.document)
    if model is None or model.kind != reference.get("kind"):
        known_models = (
            ", ".join(f"{known_model.kind} {known_model.key}" for known_model in models.values()) or "no workload"
        )
        raise target_field.error(
            f"the manifests have no {reference.get('kind')} {reference.get('name')}; they have {known_models}"
        )
    for metric in spec.metrics:
        fault = _find_metric_fault(metric, model)
        if fault:
            raise manifest.field.error(f"{manifest.kind} {manifest.name}: {fault}")
    return AutoscalerModel(spec=spec, workload=model.key)


def _metric_names(specs: Iterable[Spec]) -> list[str]:
    """The names of all resources and metrics that specs read, each once."""
    names: dict[str, None] = {}
    for metric in (metric for spec in specs for metric in spec.metrics):
        if isinstance(metric, ResourceMetric):
            names[metric.resource] = None
        elif isinstance(metric, IdentifiedMetric):
            names[metric.identifier.name] = None
    return list(names)


def _find_metric_fault(metric: Metric, model: WorkloadModel) -> str:
    """Why a resource metric cannot be evaluated on a workload; empty if it can."""
    fault = resource_faults.find_fault(metric, model)
    if fault or not isinstance(metric, ResourceMetric) or model.has_load(metric.resource):
        return fault
    return (
        f"{model.key} has no {metric.resource} load; state `load.{metric.resource}` or `load.requests` under "
        f"`workloads.{model.key.partition('/')[2]}` (0 for none)"
    )
