"""Defines the two kinds of autoscalers: HorizontalPodAutoscaler, and podscaler's custom resource PodAutoscaler.

Both have the spec and the status of autoscaling/v2. An AutoscalerKind has the API path and the names of one kind. A
PodAutoscaler may have the name of a HorizontalPodAutoscaler, so its key has a prefix that no name of an object can
have: `("shop", "web")` is a HorizontalPodAutoscaler, `("shop", "podautoscaler/web")` a PodAutoscaler.

To add a third kind, add it to KINDS and `of_key`, and look at the modules that compare with HPA or POD_AUTOSCALER (the
informers, migration).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podscaler.kube.client import urls
from podscaler.kube.informers.cache import Key


@dataclass(frozen=True, slots=True)
class AutoscalerKind:
    """One kind of autoscalers.

    Attributes:
        flag: the kind's name in `--autoscaler-kinds` and `podscaler migrate`.
        group, version, kind, plural: as in the API.
        prefix: precedes the object's name in keys.
    """

    flag: str
    group: str
    version: str
    kind: str
    plural: str
    prefix: str = ""

    @property
    def api_version(self) -> str:
        """Group and version, such as `autoscaling/v2`."""
        return f"{self.group}/{self.version}"

    @property
    def word(self) -> str:
        """The singular in logs: `horizontalpodautoscaler`."""
        return self.kind.lower()

    @property
    def resource(self) -> str:
        """Plural name and group for messages, such as `horizontalpodautoscalers.autoscaling`."""
        return f"{self.plural}.{self.group}"

    def key(self, namespace: str, name: str) -> Key:
        """The key of an object in the controller's state."""
        return namespace, f"{self.prefix}{name}"

    def path(self, namespace: str = "", *name_and_subresource: str) -> str:
        """The path of the collection in a namespace (empty: in all), or of the object or subresource in it."""
        scope = ("namespaces", namespace) if namespace else ()
        return urls.group_version(self.group, self.version) + urls.path(*scope, self.plural, *name_and_subresource)


HPA = AutoscalerKind(
    flag="hpa", group="autoscaling", version="v2", kind="HorizontalPodAutoscaler", plural="horizontalpodautoscalers"
)
POD_AUTOSCALER = AutoscalerKind(
    flag="podautoscaler",
    group="podscaler.dev",
    version="v1alpha1",
    kind="PodAutoscaler",
    plural="podautoscalers",
    prefix="podautoscaler/",
)
KINDS: Sequence[AutoscalerKind] = (HPA, POD_AUTOSCALER)
"""All kinds."""
NAMES: Mapping[str, AutoscalerKind] = {
    **{name: kind for kind in KINDS for name in (kind.flag, kind.word, kind.plural)},
    "pa": POD_AUTOSCALER,
}
"""The kinds by the names that commands accept."""


def parse(kinds_text: str) -> tuple[AutoscalerKind, ...]:
    """The kinds in a text like `hpa,podautoscaler`, each once, in the order of KINDS. Raises ValueError."""
    kind_names = {kind_name.strip() for kind_name in kinds_text.split(",")}
    unknown = sorted(kind_names - {kind.flag for kind in KINDS})
    if unknown:
        raise ValueError(f'"{unknown[0]}" is none of {", ".join(kind.flag for kind in KINDS)}')
    return tuple(kind for kind in KINDS if kind.flag in kind_names)


def of_key(key: Key) -> AutoscalerKind:
    """The kind of the autoscaler that has the key."""
    _, name = key
    return POD_AUTOSCALER if name.startswith(POD_AUTOSCALER.prefix) else HPA


def object_key(key: Key) -> Key:
    """Namespace and name of the object that has the key."""
    namespace, name = key
    return namespace, name.removeprefix(of_key(key).prefix)


def described(key: Key) -> str:
    """The autoscaler that has the key, for the log: `horizontalpodautoscaler <namespace>/<name>`."""
    return f"{of_key(key).word} {'/'.join(object_key(key))}"
