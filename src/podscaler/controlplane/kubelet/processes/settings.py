"""Settings of the node. `podscaler.cli.up` sets data_dir, pod_network and nameserver; tests also set the others.

A new setting is a field of `KubeletSettings` with a default.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

PodNetworkMode = Literal["auto", "namespaces", "loopback"]
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Settings of the node.

    Attributes:
        data_dir: the directory of the node's files.
        node_name: empty for the name of the last run, or the host name.
        search_path: PATH of containers without a root file system of their own, by default that of `up`.
        log_max_bytes: the size of a log file; a container has two for its present start and two for the one before.
        stop_grace_s: the grace period of containers when the node stops, if their own is not shorter.
        heartbeat_s: the seconds between renewals of the node's Lease.
        max_pods: the capacity `pods` of the Node.
        nameserver: the address of the control plane's DNS server, empty if it has none.
        labels: labels of the Node, besides those that every node has; they win.
        pod_network: whether pods get network namespaces (`loopback`: none); `auto`: where the machine allows it.
    """

    data_dir: Path
    node_name: str = ""
    search_path: str = field(default_factory=lambda: os.environ.get("PATH", DEFAULT_PATH))
    log_max_bytes: int = 10 << 20
    stop_grace_s: float = 5.0
    heartbeat_s: float = 10.0
    max_pods: int = 5000
    nameserver: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    pod_network: PodNetworkMode = "auto"
