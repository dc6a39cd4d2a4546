"""What the workers of all pods share: the node's view of itself and its tools.

`node_agent` makes one `Host`; `pod_worker`, `container_run` and the rest are given it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from podscaler.clock import Clock
from podscaler.controlplane.events import EventRecorder
from podscaler.controlplane.registry import Registry
from podscaler.controlplane.runtime.addresses import AddressBlock
from podscaler.controlplane.runtime.background import Background
from podscaler.controlplane.runtime.capabilities import Capabilities
from podscaler.controlplane.runtime.cgroups import Cgroups
from podscaler.controlplane.runtime.images import ImageCommand
from podscaler.controlplane.runtime.leftovers import Sweeper
from podscaler.controlplane.runtime.log_files import LogBook
from podscaler.controlplane.runtime.paths import Paths
from podscaler.controlplane.runtime.settings import RuntimeSettings
from podscaler.controlplane.runtime.threads import Threads


@dataclass(frozen=True, slots=True)
class Host:
    """The node's tools.

    Attributes:
        instance: the id of the data directory, in the environment of every process.
        resolve_image: what an image name stands for, None for an unknown one.
        allocatable: the node's resources, as texts.
        cgroups: where limits are enforced, None where they are not.
    """

    registry: Registry
    settings: RuntimeSettings
    clock: Clock
    events: EventRecorder
    addresses: AddressBlock
    threads: Threads
    background: Background
    book: LogBook
    sweeper: Sweeper
    paths: Paths
    capabilities: Capabilities
    resolve_image: Callable[[str], ImageCommand | None]
    instance: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    cgroups: Cgroups | None = None
