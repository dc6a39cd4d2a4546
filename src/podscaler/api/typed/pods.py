"""The Pod of core/v1 as msgspec struct, with only those fields that decisions use, and the CPU limits for recordings.

The controller's pod cache and recordings decode it; `podscaler.core.model.api_conversion` makes the facts of a decision
from it. Decoding skips all other fields, so that a list of thousands of pods is cheap. Never written back. Quantities
and times are texts. A field that decisions begin to use is added to both modules.

Source: core/v1 of Kubernetes v1.37.0; which fields matter: docs/spec/decision.md 6.1 (Grouping pods), 6.2 (Requests).
"""

from msgspec import field

from podscaler.api.machinery.meta import Wire

ResourceList = dict[str, str]
"""Resource names to quantity texts."""


class PodMeta(Wire, frozen=True):
    """The metadata of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class CPULimit(Wire, frozen=True):
    """The limit of CPU; empty: there is none. Other limits are not read."""

    cpu: str = ""


class ResourceRequirements(Wire, frozen=True):
    """The resources of a container or pod.

    Attributes:
        limits: for recordings, whose readers must know which pods could not use more; no decision reads it.
    """

    requests: ResourceList | None = None
    limits: CPULimit | None = None


class Container(Wire, frozen=True):
    """A regular or an init container; `restart_policy` is `Always` for a sidecar."""

    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class PodSpec(Wire, frozen=True):
    """The spec of a pod; `resources` are those of the pod as a whole."""

    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodCondition(Wire, frozen=True):
    """One condition of a pod (`Ready`)."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodStatus(Wire, frozen=True):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    start_time: str | None = None


class Pod(Wire, frozen=True):
    """core/v1 Pod."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
