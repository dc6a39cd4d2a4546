"""Lists the scraped pods as target groups in the format of Prometheus' HTTP service discovery; called by `scraper`.

A Prometheus that is built without Kubernetes discovery (Debian's) reads them from `/podscaler/targets` of `up`. A new
label: an entry in `_target_labels`. For example:

    {"targets": ["127.7.0.4:8080"], "labels": {"namespace": "default", "pod": "web-1", "__meta_kubernetes_...": ...}}

Source: the format of HTTP service discovery, and the labels of `kubernetes_sd_config` with the role `pod`
(Prometheus documentation).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from podscaler.controlplane.metrics.scraped.targets import ScrapeTarget

META: Final = "__meta_kubernetes_"
"""Prefix of the labels that Prometheus drops unless its relabeling uses them."""
_NOT_IN_LABELS: Final = re.compile(r"[^a-zA-Z0-9_]")
"""The characters of Kubernetes names that names of Prometheus labels cannot have."""

_LocatedTarget = tuple[Mapping[str, Any], ScrapeTarget, tuple[str, int]]
"""A core/v1 Pod, its scrape target, and the address and port to connect to."""


def target_groups(targets: Iterable[_LocatedTarget]) -> list[dict[str, Any]]:
    """One group for each pod: its address, and its labels."""
    return [
        {"targets": [f"{host}:{port}"], "labels": _target_labels(pod, target)} for pod, target, (host, port) in targets
    ]


def _target_labels(pod: Mapping[str, Any], target: ScrapeTarget) -> dict[str, str]:
    """The labels of a pod's target: namespace and pod, and those that Prometheus' own pod discovery gives."""
    metadata = pod["metadata"]
    labels = {
        "__scheme__": target.scheme,
        "__metrics_path__": target.path,
        "namespace": metadata["namespace"],
        "pod": metadata["name"],
        f"{META}namespace": metadata["namespace"],
        f"{META}pod_name": metadata["name"],
        f"{META}pod_uid": metadata["uid"],
        f"{META}pod_container_port_number": str(target.port),
        f"{META}pod_node_name": pod["spec"].get("nodeName", ""),
    }
    for kind in ("label", "annotation"):
        for name, label_value in (metadata.get(f"{kind}s") or {}).items():
            labels[f"{META}pod_{kind}_{_NOT_IN_LABELS.sub('_', name)}"] = label_value
    return labels
