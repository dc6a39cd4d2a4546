"""Defines the settings of the controller: the values of its flags.

`podscaler.cli.options.settings` checks flags and makes the settings; all parts of the controller read them. A new flag:
an attribute here, and an entry in `flags` or one of its parts, so that recordings have it. A flag or gate that changes
decisions is also an attribute of `podscaler.core.model.settings`, which `decision` sets.

Source: docs/spec/controller.md 7 (Flags).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podscaler.api.machinery import duration
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.options import autoscaler_kinds, feature_gates, installation
from podscaler.controller.options.autoscaler_kinds import AutoscalerKind
from podscaler.controller.options.feature_gates import FeatureGates
from podscaler.core.model import emulation
from podscaler.core.model import settings as core_settings
from podscaler.metrics.heapster import HeapsterService

SLOTS_PER_WORKER = 20
"""Concurrent syncs for each worker of the flag: a sync mostly waits for responses, so its default of 5 is too few."""
TICK_MAX_S = 2.0
"""The greatest `ControllerSettings.tick_s`."""
REACTING_TICK_MAX_S = 1.0
"""The greatest `ControllerSettings.tick_s` with `--react-to-changes`."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The values of kube-controller-manager's flags about autoscalers, and of podscaler's own, with their defaults.

    Attributes:
        concurrent_syncs: `--concurrent-horizontal-pod-autoscaler-syncs`, workers in parallel.
        sync_period_ns: `--horizontal-pod-autoscaler-sync-period`, greater than 0.
        downscale_stabilization_ns: `--horizontal-pod-autoscaler-downscale-stabilization`.
        tolerance: `--horizontal-pod-autoscaler-tolerance`, as a ratio.
        cpu_initialization_period_ns: `--horizontal-pod-autoscaler-cpu-initialization-period`.
        initial_readiness_delay_ns: `--horizontal-pod-autoscaler-initial-readiness-delay`.
        gates: `--feature-gates`.
        algorithm: `--algorithm`, one of core's ALGORITHMS.
        upscale_delay_ns: `--horizontal-pod-autoscaler-upscale-delay`; None: as the algorithm does.
        downscale_delay_ns: `--horizontal-pod-autoscaler-downscale-delay`; None: as the algorithm does.
        emulate: `--emulate`, the version of Kubernetes whose arithmetic applies.
        history_namespace: where histories outlive the process; None: nowhere (`--history=memory`).
        settings_namespace: where the settings are published, or removed; `--history-namespace`.
        status_period_ns: `--status-period`, how often a status is written in which only values of metrics changed, at
            most; 0: at every change, as kube-controller-manager.
        reacts: `--react-to-changes`, whether a change of usage causes a sync before the period ends.
        kinds: `--autoscaler-kinds`, which kinds of autoscalers are managed.
        heapster: where metrics are read with `--horizontal-pod-autoscaler-use-rest-clients=false`; None: from the
            metrics APIs.
        dry_run: `--dry-run`, whether nothing at all is written.
        compares: `--compare`, whether decisions are compared with what another controller wrote; only with `dry_run`.
        other_controller: `--other-controller`, one of `podscaler.controller.coexistence.standby.POLICIES`.
        metric_sources: `--metric-sources`, whether external metrics of MetricSources are read directly.
        metric_source_folder: `--metric-source-folder`, below which MetricSources may read files; None: no files.
        field_manager: the field manager of this controller's writes (`podscaler.controller.options.installation`).
    """

    concurrent_syncs: int = 5
    sync_period_ns: int = 15 * NANOSECONDS
    downscale_stabilization_ns: int = 300 * NANOSECONDS
    tolerance: float = 0.1
    cpu_initialization_period_ns: int = 300 * NANOSECONDS
    initial_readiness_delay_ns: int = 30 * NANOSECONDS
    gates: FeatureGates = field(default_factory=FeatureGates)
    algorithm: str = core_settings.CURRENT
    upscale_delay_ns: int | None = None
    downscale_delay_ns: int | None = None
    emulate: str = emulation.V1_37.version
    history_namespace: str | None = "kube-system"
    settings_namespace: str = "kube-system"
    status_period_ns: int = 0
    reacts: bool = False
    kinds: tuple[AutoscalerKind, ...] = (autoscaler_kinds.HPA,)
    heapster: HeapsterService | None = None
    dry_run: bool = False
    compares: bool = False
    other_controller: str = "ignore"
    metric_sources: bool = True
    metric_source_folder: Path | None = None
    field_manager: str = installation.MANAGER

    @property
    def concurrency_slots(self) -> int:
        """The concurrency slots: how many syncs run at once, not counting those that wait for metrics."""
        return SLOTS_PER_WORKER * self.concurrent_syncs

    @property
    def tick_s(self) -> float:
        """How old metrics may be that a sync uses: a tenth of the sync period, at most 2 s, or 1 s if it reacts."""
        return min(self.sync_period_s / 10, REACTING_TICK_MAX_S if self.reacts else TICK_MAX_S)

    @property
    def status_period_s(self) -> float:
        """How often a status is written in which only values of metrics changed, in seconds; 0: always."""
        return self.status_period_ns / NANOSECONDS

    @property
    def sync_period_s(self) -> float:
        """The sync period in seconds."""
        return self.sync_period_ns / NANOSECONDS

    @property
    def flags(self) -> dict[str, Any]:
        """The settings of syncs by the names of their flags, as recordings contain them.

        Those of Kubernetes v1.37 are always there, so that recordings state them whatever later defaults are; others
        only where they are set. `--emulate`, which recordings state apart, is left out, and so are flags that change
        no decision (`--dry-run`, `--compare`, namespaces).
        """
        prefix = "horizontal-pod-autoscaler-"
        return {
            "concurrent-horizontal-pod-autoscaler-syncs": self.concurrent_syncs,
            f"{prefix}sync-period": duration.text(self.sync_period_ns),
            f"{prefix}downscale-stabilization": duration.text(self.downscale_stabilization_ns),
            f"{prefix}tolerance": self.tolerance,
            f"{prefix}cpu-initialization-period": duration.text(self.cpu_initialization_period_ns),
            f"{prefix}initial-readiness-delay": duration.text(self.initial_readiness_delay_ns),
            "feature-gates": str(self.gates),
            **self._older_flags,
            "history": "memory" if self.history_namespace is None else "cluster",
            **self._own_flags,
        }

    @property
    def _own_flags(self) -> dict[str, Any]:
        """The flags that no Kubernetes release has, where they are set."""
        period = {"status-period": duration.text(self.status_period_ns)} if self.status_period_ns else {}
        reacts = {"react-to-changes": True} if self.reacts else {}
        kinds = {} if self.kinds == (autoscaler_kinds.HPA,) else {"autoscaler-kinds": self._kinds_text}
        return period | reacts | kinds | self._heapster_flags

    @property
    def _heapster_flags(self) -> dict[str, Any]:
        """The flags of metrics from Heapster, where they are set."""
        if self.heapster is None:
            return {}
        chosen, defaults = self.heapster, HeapsterService()
        flags = {
            "heapster-namespace": (chosen.namespace, defaults.namespace),
            "heapster-service": (chosen.name, defaults.name),
            "heapster-scheme": (chosen.scheme, defaults.scheme),
            "heapster-port": (chosen.port, defaults.port),
            "heapster-url": (chosen.url, defaults.url),
        }
        changed_flags = {
            flag: chosen_value for flag, (chosen_value, default) in flags.items() if chosen_value != default
        }
        return {"horizontal-pod-autoscaler-use-rest-clients": False} | changed_flags

    @property
    def _kinds_text(self) -> str:
        return ",".join(kind.flag for kind in self.kinds)

    @property
    def _older_flags(self) -> dict[str, str]:
        """The flags of older Kubernetes releases, where they are set; not `--emulate`, which recordings have apart."""
        delays = {"upscale-delay": self.upscale_delay_ns, "downscale-delay": self.downscale_delay_ns}
        flags = {
            f"horizontal-pod-autoscaler-{name}": duration.text(ns) for name, ns in delays.items() if ns is not None
        }
        return flags if self.algorithm == core_settings.CURRENT else {"algorithm": self.algorithm} | flags

    @property
    def decision(self) -> core_settings.Settings:
        """The settings of decisions."""
        enabled = self.gates.enabled
        return core_settings.Settings(
            tolerance=self.tolerance,
            downscale_stabilization_ns=self.downscale_stabilization_ns,
            cpu_initialization_period_ns=self.cpu_initialization_period_ns,
            initial_readiness_delay_ns=self.initial_readiness_delay_ns,
            algorithm=self.algorithm,
            upscale_delay_ns=self.upscale_delay_ns,
            downscale_delay_ns=self.downscale_delay_ns,
            emulation=emulation.VERSIONS[self.emulate],
            gates=core_settings.Gates(
                scale_to_zero=enabled(feature_gates.HPA_SCALE_TO_ZERO),
                generation=enabled(feature_gates.HPA_GENERATION),
                optimized_selector_store=enabled(feature_gates.HPA_OPTIMIZED_SELECTOR_STORE),
                pod_level_resources=enabled(feature_gates.POD_LEVEL_RESOURCES),
            ),
        )
