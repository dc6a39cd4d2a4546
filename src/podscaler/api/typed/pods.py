"""The typed Pod of core/v1, trimmed to the fields that decisions use.

Read by the controller's pod cache and by recordings; `podscaler.core.model.intake` makes the facts of a decision from
it. Decoding skips everything else, which is what makes a list of thousands of pods cheap. Never written back.

Source: core/v1 of Kubernetes v1.37.0; which fields matter: docs/spec/decision.md 6.1 (Grouping pods), 6.2 (Requests).
"""

from msgspec import field

from podscaler.api.machinery.meta import Wire

ResourceList = dict[str, str]
"""Resource names to quantity texts."""


class PodMeta(Wire, frozen=True):
    """The trimmed metadata of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class ResourceRequirements(Wire, frozen=True):
    """The requests of a container or a pod."""

    requests: ResourceList | None = None


class Container(Wire, frozen=True):
    """A regular or an init container; `restart_policy` is `Always` for a sidecar."""

    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class PodSpec(Wire, frozen=True):
    """The trimmed spec of a pod."""

    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodCondition(Wire, frozen=True):
    """One condition of a pod; times as texts."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodStatus(Wire, frozen=True):
    """The trimmed status of a pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    start_time: str | None = None


class Pod(Wire, frozen=True):
    """core/v1 Pod, trimmed."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
