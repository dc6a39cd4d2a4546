"""What the user of the node decides; `cli` fills it in from flags, tests with small numbers."""

import os
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Settings of the node.

    Attributes:
        data_dir: where the node keeps its files; the folder of `up`'s store is a good parent.
        node_name: empty for this machine's name.
        search_path: PATH of containers, by default that of `up`: the machine is the image.
        log_max_bytes: of one log file; a container has two, and two more for its start before.
        stop_grace_s: how long containers may take to end when the node stops, if their own grace is not shorter.
        heartbeat_s: how often the node's Lease is renewed.
        max_pods: what the Node says it can run.
        nameserver: the address at which the control plane answers for names of Services, empty where it does not.
        labels: of the Node, besides those that every node has.
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
