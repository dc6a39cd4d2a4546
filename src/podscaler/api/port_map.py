"""Reads and writes the annotation `podscaler.dev/port-map`, which names the real port of each port that is moved.

A user may be forbidden to bind ports below 1024. The kubelet (`podscaler.controlplane.kubelet.pods.pod_writer`) and the
Service proxy (`podscaler.controlplane.network.service_proxy`) then listen on a higher port, and annotate the pod or
Service: `{"80": 20080}` means that port 80 of the manifest is served at port 20080. Whatever connects to a port of a
pod or Service (endpoints, DNS, probes, service variables, ...) reads the annotation by `of`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

ANNOTATION: Final = "podscaler.dev/port-map"
PORT_MAX: Final = 65_535
_PORT: Final = re.compile(r"[0-9]{1,5}")


def of(obj: Mapping[str, Any]) -> dict[int, int]:
    """The port map of a pod or Service: port of the manifest -> real port.

    Empty without the annotation, and where its text is no JSON object; members that are no port numbers are left out.
    """
    annotation = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        ports = json.loads(annotation) if annotation else {}
    except (ValueError, TypeError, RecursionError):  # users write annotations, too
        return {}
    if not isinstance(ports, dict):
        return {}
    return {int(port): real_port for port, real_port in ports.items() if _PORT.fullmatch(port) and _is_port(real_port)}


def _is_port(value: Any) -> bool:
    """Whether a JSON value is a port number."""
    return type(value) is int and 0 < value <= PORT_MAX


def text(real_ports: Mapping[int, int]) -> str:
    """The value of the annotation for a port map; empty for an empty one."""
    ports = {str(port): real_port for port, real_port in real_ports.items()}
    return json.dumps(ports, sort_keys=True) if ports else ""
