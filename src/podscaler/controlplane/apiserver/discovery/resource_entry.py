"""One resource as discovery tells of it, whatever it comes from.

Made by `discovery` from routes and reviews, and by `metric_apis` from metrics.
"""

from dataclasses import dataclass

from podscaler.controlplane.apiserver.http.routes import Subresource


@dataclass(frozen=True, slots=True)
class Listed:
    """One resource of a group and version; without a kind, only its subresources are there."""

    name: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    stored_as: str = ""
    subresources: tuple[Subresource, ...] = ()
