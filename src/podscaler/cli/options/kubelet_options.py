"""Defines the flags of `podscaler adapter --resource`: those of metrics-server, with their meanings.

`podscaler.cli.options.adapter_options` puts `KUBELET_OPTIONS` on the command and gives the values to `parse_kubelets`.
A new flag: an Option of KUBELET_OPTIONS, and its value in `parse_kubelets`.

Source: metrics-server v0.9. Differs: the resolution is 15 s by default, as its manifests have it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from podscaler.adapter.resource import node_targets
from podscaler.adapter.resource.kubelet_metrics import ScrapeSettings
from podscaler.adapter.resource.node_targets import KubeletAddressing
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import DURATION, INT32, FlagType, Option
from podscaler.kube.transport.config import Config

RESOLUTION_FLAG = "metric-resolution"
TIMEOUT_FLAG = "kubelet-request-timeout"
ADDRESS_TYPES = FlagType("types", node_targets.parse_address_types)
_DEFAULT_TYPES = ",".join(node_targets.ADDRESS_TYPES)
FILE: click.ParamType[Any] = click.Path(path_type=Path)

KUBELET_OPTIONS = (
    Option("resource", click.BOOL, None, "serve metrics.k8s.io from the kubelets, as metrics-server", is_switch=True),
    Option(RESOLUTION_FLAG, DURATION, "15s", "how often each kubelet is scraped; at least 1s"),
    Option("kubelet-preferred-address-types", ADDRESS_TYPES, _DEFAULT_TYPES, "which address of a Node is used"),
    Option("kubelet-port", INT32, "10250", "the port of kubelets"),
    Option("kubelet-use-node-status-port", click.BOOL, None, "use the port of the Node's status", is_switch=True),
    Option("kubelet-certificate-authority", FILE, None, "the authorities of kubelets; default: those of the cluster"),
    Option("kubelet-insecure-tls", click.BOOL, None, "do not verify the certificates of kubelets", is_switch=True),
    Option(TIMEOUT_FLAG, DURATION, "10s", "the time limit of a scrape"),
)
"""The flags of `--resource`, in the order of the help."""


def parse_kubelets(flag_values: Mapping[str, Any], cluster: Config) -> ScrapeSettings | None:
    """How kubelets are scraped, from the flags' values by click's names; None without `--resource`. Raises UsageError.

    Args:
        flag_values: the values of `KUBELET_OPTIONS`; the file of authorities is read.
        cluster: the settings of the API server, whose credentials kubelets get.
    """
    if not flag_values["resource"]:
        return None
    resolution_s = flag_values["metric_resolution"] / NANOSECONDS
    timeout_s = flag_values["kubelet_request_timeout"] / NANOSECONDS
    if resolution_s < 1:
        raise UsageError(f"--{RESOLUTION_FLAG} must be at least 1s")
    if not 0 < timeout_s <= resolution_s:
        raise UsageError(f"--{TIMEOUT_FLAG} must be greater than 0 and at most --{RESOLUTION_FLAG}")
    if not 0 < flag_values["kubelet_port"] < 65536:
        raise UsageError(f"--kubelet-port must be between 1 and 65535, but got {flag_values['kubelet_port']}")
    addressing = KubeletAddressing(
        flag_values["kubelet_preferred_address_types"],
        flag_values["kubelet_port"],
        uses_status_port=bool(flag_values["kubelet_use_node_status_port"]),
    )
    return ScrapeSettings(_kubelet_config(flag_values, cluster), addressing, resolution_s, timeout_s)


def _kubelet_config(flag_values: Mapping[str, Any], cluster: Config) -> Config:
    """How kubelets are reached: as the cluster, but with an authority of their own. Raises UsageError."""
    path, is_insecure = flag_values["kubelet_certificate_authority"], bool(flag_values["kubelet_insecure_tls"])
    if path is None:
        return replace(cluster, verify=cluster.verify and not is_insecure, origin="kubelets")
    if is_insecure:
        raise UsageError("--kubelet-certificate-authority and --kubelet-insecure-tls exclude each other")
    try:
        authority = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--kubelet-certificate-authority {path}: {error.strerror or error}") from error
    return replace(cluster, ca_pem=authority, verify=True, origin=f"--kubelet-certificate-authority {path}")
