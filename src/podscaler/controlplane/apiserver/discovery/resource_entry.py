"""One resource in a discovery document.

Made by `discovery` from routes and reviews, and by `metric_apis` from metrics.
"""

from dataclasses import dataclass

from podscaler.controlplane.apiserver.http.routes import Subresource


@dataclass(frozen=True, slots=True)
class DiscoveryResource:
    """One resource of a group and version; with an empty `kind` only its subresources are listed.

    Attributes:
        stored_as: `group/version/kind` of the storage version, empty for resources that are not stored.
    """

    name: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    stored_as: str = ""
    subresources: tuple[Subresource, ...] = ()
