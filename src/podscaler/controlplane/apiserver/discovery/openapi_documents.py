"""Which OpenAPI v3 documents there are now: those of the kinds that are always served, and those of custom resources.

Made by `app`, read by `openapi_pages`, and brought up to date whenever the routes have changed. What did not change is
made by the same function as before, so that a new custom resource costs its own document and no other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podscaler.api.openapi import openapi, openapi_values
from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.resource.resources import Resource
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.registry.providers import MetricApis

Make = Callable[[], Mapping[str, Any]]


class OpenApiDocuments:
    """See the module.

    Args:
        resources: the kinds that are always served.
        reviews: what can only be created.
        routes: what is served now.
        metrics: the metrics APIs that are served beside it.
    """

    def __init__(
        self,
        resources: Sequence[Resource],
        reviews: Sequence[CreateOnly],
        routes: Routes,
        metrics: MetricApis | None = None,
    ) -> None:
        self._reviews = reviews
        self._routes = routes
        self._always = openapi.documents(resources, reviews)
        if metrics is not None:
            self._always |= openapi_values.documents(metrics.versions, metrics.list_kinds)
        self._custom: dict[str, tuple[tuple[Resource, ...], Mapping[str, Make]]] = {}

    def __call__(self) -> Mapping[str, Make]:
        """Functions that make the documents, by path, in order."""
        groups: dict[str, list[Resource]] = {}
        for resource in self._routes.custom_resources():
            groups.setdefault(resource.group, []).append(resource)
        self._custom = {group: self._of_group(group, tuple(found)) for group, found in groups.items()}
        found: dict[str, Make] = dict(self._always)
        for _, documents in self._custom.values():
            found |= documents
        return dict(sorted(found.items()))

    def _of_group(self, group: str, custom: tuple[Resource, ...]) -> tuple[tuple[Resource, ...], Mapping[str, Make]]:
        known = self._custom.get(group)
        if known is not None and list(map(id, known[0])) == list(map(id, custom)):
            return known
        resources = list({id(resource): resource for resource in self._routes.resources_of(group)}.values())
        documents = openapi.documents(resources, [review for review in self._reviews if review.group == group])
        own = f"apis/{group}"
        return custom, {path: make for path, make in documents.items() if path == own or path.startswith(f"{own}/")}
