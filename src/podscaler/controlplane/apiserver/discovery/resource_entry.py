"""Describes one resource in a discovery document, independent of the document's form.

`discovery` creates it from routes and reviews, `metric_apis` from metrics; `discovery` makes the entries of both forms
(APIResourceList and aggregated discovery) of it.
"""

from dataclasses import dataclass

from podscaler.controlplane.apiserver.http.routes import Subresource


@dataclass(frozen=True, slots=True)
class DiscoveryResource:
    """One resource of a group and version; with an empty `kind` only its subresources are listed.

    Attributes:
        name, singular: the plural (`deployments`), and the singular.
        kind: empty for a resource of which another API group has the objects.
        verbs: such as `get`, in the order of the document.
        storage_gvk: `group/version/kind` of the storage version, empty for resources that are not stored.
        subresources: in the order of the document.
    """

    name: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_gvk: str = ""
    subresources: tuple[Subresource, ...] = ()
