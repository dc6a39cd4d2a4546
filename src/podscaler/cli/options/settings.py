"""Defines the controller's flags, with kube-controller-manager's names, meanings and defaults.

`podscaler.cli.commands.controller` and `podscaler.cli.up.up` put `controller_options` on their commands and give the
values to `parse_settings`; other commands use parts of OPTIONS. A wrong value is one UsageError sentence, worded as by
kube-controller-manager's flag parser. A new flag: add it to OPTIONS, to `parse_settings`, to `ControllerSettings`, and,
if it changes no decision, to _RUNNING_OPTIONS.

Source: docs/spec/controller.md 7 (Flags); the flags of kube-controller-manager 1.6 to 1.11.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from podscaler.api.machinery import duration, names
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import DURATION, FLOAT64, INT32, NAMESPACE, SERVICE, FlagType, Option, flag_group
from podscaler.controller.options import autoscaler_kinds, feature_gates
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model import settings as core_settings
from podscaler.kube.client import urls
from podscaler.metrics.heapster import HeapsterService

PREFIX = "horizontal-pod-autoscaler-"
REST_CLIENTS_FLAG = f"{PREFIX}use-rest-clients"
SYNC_PERIOD_FLAG = f"{PREFIX}sync-period"
SYNC_PERIODS_NS = {"current": 15 * NANOSECONDS, "v1.1": 30 * NANOSECONDS}
"""The sync period of each algorithm, where the flag is not given."""
CLUSTER = "cluster"
"""The value of `--history` for ConfigMaps."""
MEMORY = "memory"
CONCURRENT_SYNCS_FLAG = "concurrent-horizontal-pod-autoscaler-syncs"


def parse_history(history_place: str) -> str:
    """Where histories are stored: `cluster` or `memory`. Raises ValueError."""
    if history_place not in (CLUSTER, MEMORY):
        raise ValueError(f'must be "{CLUSTER}" or "{MEMORY}"')
    return history_place


def parse_scheme(scheme: str) -> str:
    """`http` or `https`. Raises ValueError."""
    if scheme not in ("http", "https"):
        raise ValueError('must be "http" or "https"')
    return scheme


def parse_port_name(port_name: str) -> str:
    """The name or the number of a port. Raises ValueError."""
    if not names.dns_label_errors(port_name) or port_name.isdigit():
        return port_name
    raise ValueError("must be the name or the number of a port")


def parse_url(url_text: str) -> str:
    """An HTTP URL without credentials, query and fragment, and without a slash at its end. Raises ValueError."""
    parts = urlsplit(url_text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must have no user, query and fragment")
    if error := urls.address_error(url_text):
        raise ValueError(error)
    return url_text.rstrip("/")


TEXT = FlagType("text", str)
SCHEME = FlagType("scheme", parse_scheme)
PORT_NAME = FlagType("port", parse_port_name)
URL = FlagType("url", parse_url)
VERSION = FlagType("version", lambda text: core_settings.parse_version(text).version)
KINDS = FlagType("kinds", autoscaler_kinds.parse)
ALGORITHM = FlagType("name", core_settings.parse_algorithm)
HISTORY = FlagType("place", parse_history)
FOLDER = click.Path(file_okay=False, path_type=Path)


HEAPSTER_OPTIONS = (
    Option(
        REST_CLIENTS_FLAG,
        click.BOOL,
        "true",
        "read metrics from the metrics APIs; false: from Heapster (docs/heapster.md)",
    ),
    Option("heapster-namespace", NAMESPACE, "kube-system", "of Heapster's Service"),
    Option("heapster-service", SERVICE, "heapster", "the name of Heapster's Service"),
    Option("heapster-scheme", SCHEME, "http", 'of Heapster\'s Service: "http" or "https"'),
    Option("heapster-port", PORT_NAME, None, "name or number of a port of Heapster's Service [default: its first]"),
    Option("heapster-url", URL, None, "Heapster's own address, in place of its Service"),
)
"""Where metrics are read. Kubernetes 1.6 to 1.10 had the first flag, and constants in place of the others."""


OPTIONS = (
    Option(CONCURRENT_SYNCS_FLAG, INT32, "5", "autoscalers that are synced at the same time"),
    Option(SYNC_PERIOD_FLAG, DURATION, None, "how often each autoscaler is synced [default: 15s; with v1.1 30s]"),
    Option(
        f"{PREFIX}downscale-stabilization", DURATION, "5m0s", "how long a higher recommendation holds back a scale-down"
    ),
    Option(f"{PREFIX}tolerance", FLOAT64, "0.1", "how far from 1.0 a ratio may be without any change"),
    Option(
        f"{PREFIX}cpu-initialization-period",
        DURATION,
        "5m0s",
        "how long after a pod's start CPU samples from before it was ready are skipped",
    ),
    Option(
        f"{PREFIX}initial-readiness-delay",
        DURATION,
        "30s",
        "how long after a pod's start a change of readiness counts as its first",
    ),
    Option(
        "feature-gates", TEXT, None, "Name=true|false,... of " + ", ".join(sorted(feature_gates.KNOWN)), is_list=True
    ),
    Option(
        "history",
        HISTORY,
        CLUSTER,
        f'where recommendations and scale events are kept: "{CLUSTER}" (past a restart) or "{MEMORY}" (as upstream)',
    ),
    Option("history-namespace", NAMESPACE, "kube-system", "of the ConfigMaps that keep them, and the settings"),
    Option(
        "status-period",
        DURATION,
        "0s",
        "how often, at most, a status is written in which only values of metrics changed; 0: at every change",
    ),
    Option(
        "react-to-changes",
        click.BOOL,
        None,
        "read the usage of pods every second, and sync autoscalers whose load moved before their period ends",
        is_switch=True,
    ),
    Option(
        "autoscaler-kinds",
        KINDS,
        "hpa",
        "which autoscalers are managed: hpa, podautoscaler (podscaler.dev/v1alpha1), or both with a comma",
    ),
    Option(
        "metric-sources",
        click.BOOL,
        "true",
        "whether an external metric with the name of a MetricSource is read from that system",
    ),
    Option("metric-source-folder", FOLDER, None, "the folder below which MetricSources may read files [default: none]"),
    Option("emulate", VERSION, "1.37", "the Kubernetes version whose arithmetic applies: 1.37 or 1.38"),
    Option(
        "algorithm",
        ALGORITHM,
        "current",
        '"v1.1" decides as Kubernetes v1.1 did: CPU and annotated metrics, cooldowns, no windows',
    ),
    Option(
        f"{PREFIX}upscale-delay", DURATION, None, "how long after a rescale nothing is scaled up [default: 0; v1.1 3m]"
    ),
    Option(
        f"{PREFIX}downscale-delay",
        DURATION,
        None,
        "how long after a rescale nothing is scaled down [default: 0; v1.1 5m]",
    ),
    *HEAPSTER_OPTIONS,
)
"""All flags of the controller, in the order of the help."""


_RUNNING_OPTIONS = (
    CONCURRENT_SYNCS_FLAG,
    SYNC_PERIOD_FLAG,
    "history",
    "status-period",
    "react-to-changes",
    "metric-sources",
    "metric-source-folder",
)
"""The names of flags that change when autoscalers are synced and written, where histories are stored, what is read."""
DECISION_OPTIONS = tuple(
    option for option in OPTIONS if option not in HEAPSTER_OPTIONS and option.name not in _RUNNING_OPTIONS
)
"""The flags that change what is decided, with `history-namespace` and `autoscaler-kinds`; the commands explain, top and
dashboard show no others in their help."""


controller_options = flag_group(*OPTIONS)
"""Puts the controller's flags on a command; give what they set to `parse_settings`."""

decision_options = flag_group(
    *(option if option in DECISION_OPTIONS else option._replace(is_hidden=True) for option in OPTIONS)
)
"""As `controller_options`, but the help shows only the flags that change decisions."""


def parse_settings(options: Mapping[str, Any]) -> ControllerSettings:
    """The settings that the values of `controller_options` mean (by click's names; others are ignored).

    Raises UsageError for values that no controller can work with.
    """
    flag_values = {option.name: options[option.name.replace("-", "_")] for option in OPTIONS}
    if flag_values[CONCURRENT_SYNCS_FLAG] < 1:
        raise UsageError(
            f"{CONCURRENT_SYNCS_FLAG} must be greater than 0, but got {flag_values[CONCURRENT_SYNCS_FLAG]}"
        )
    period_ns = flag_values[SYNC_PERIOD_FLAG]
    if period_ns is None:
        period_ns = SYNC_PERIODS_NS[flag_values["algorithm"]]
    if period_ns <= 0:
        raise UsageError(f"{SYNC_PERIOD_FLAG} must be greater than 0, but got {duration.text(period_ns)}")
    if flag_values["status-period"] < 0:
        raise UsageError(f"status-period must not be negative, but got {duration.text(flag_values['status-period'])}")
    return ControllerSettings(
        concurrent_syncs=flag_values[CONCURRENT_SYNCS_FLAG],
        sync_period_ns=period_ns,
        downscale_stabilization_ns=flag_values[f"{PREFIX}downscale-stabilization"],
        tolerance=flag_values[f"{PREFIX}tolerance"],
        cpu_initialization_period_ns=flag_values[f"{PREFIX}cpu-initialization-period"],
        initial_readiness_delay_ns=flag_values[f"{PREFIX}initial-readiness-delay"],
        gates=feature_gates.parse(",".join(flag_values["feature-gates"])),
        emulate=flag_values["emulate"],
        algorithm=flag_values["algorithm"],
        upscale_delay_ns=flag_values[f"{PREFIX}upscale-delay"],
        downscale_delay_ns=flag_values[f"{PREFIX}downscale-delay"],
        history_namespace=flag_values["history-namespace"] if flag_values["history"] == CLUSTER else None,
        settings_namespace=flag_values["history-namespace"],
        status_period_ns=flag_values["status-period"],
        reacts=bool(flag_values["react-to-changes"]),
        kinds=flag_values["autoscaler-kinds"],
        metric_sources=flag_values["metric-sources"],
        metric_source_folder=flag_values["metric-source-folder"],
        heapster=None if flag_values[REST_CLIENTS_FLAG] else _heapster_service(flag_values),
    )


def _heapster_service(flag_values: Mapping[str, Any]) -> HeapsterService:
    """Where Heapster is reached, from the values of all flags by their names (`heapster-port`)."""
    return HeapsterService(
        namespace=flag_values["heapster-namespace"],
        name=flag_values["heapster-service"],
        scheme=flag_values["heapster-scheme"],
        port=flag_values["heapster-port"] or "",
        url=flag_values["heapster-url"] or "",
    )
