"""The pods that are scraped, as targets for Prometheus' HTTP service discovery.

A Prometheus without discovery of Kubernetes (Debian's) reads them from `/podscaler/targets` of `up`. Each pod is a
target with the labels that its discovery of pods would give it, as far as there are such here.

Source: the format of HTTP service discovery, and the labels of `kubernetes_sd_config` with the role `pod`
(Prometheus documentation).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from podscaler.controlplane.metrics.scraped.targets import ScrapeTarget

META: Final = "__meta_kubernetes_"
_NOT_IN_LABELS: Final = re.compile(r"[^a-zA-Z0-9_]")

Place = tuple[Mapping[str, Any], ScrapeTarget, tuple[str, int]]
"""A pod, where it is scraped, and the address and port at which that is."""


def target_groups(places: Iterable[Place]) -> list[dict[str, Any]]:
    """One group for each pod: its address, and its labels."""
    return [{"targets": [f"{host}:{port}"], "labels": _labels(pod, target)} for pod, target, (host, port) in places]


def _labels(pod: Mapping[str, Any], target: ScrapeTarget) -> dict[str, str]:
    metadata = pod["metadata"]
    found = {
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
        for name, value in (metadata.get(f"{kind}s") or {}).items():
            found[f"{META}pod_{kind}_{_NOT_IN_LABELS.sub('_', name)}"] = value
    return found
