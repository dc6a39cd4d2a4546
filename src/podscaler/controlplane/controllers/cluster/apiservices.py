"""The APIService registration controller: one APIService for each group and version that the API server serves.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; keys are names of APIServices
(`v2.autoscaling`). APIServices of built-in groups are created when the server starts and then left alone; those of
custom resources are created and deleted with their definitions. A metrics adapter may replace the APIService of a
metrics API by one that names the adapter's Service; when that is deleted, the own one is created again.

Source: kube-apiserver's autoregister and crdregistration controllers (labels, priorities).
"""

from collections.abc import Iterable, Sequence

from podscaler.api import group_priorities
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

RESOURCE = "apiservices.apiregistration.k8s.io"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
OWN_GROUP = "apiregistration.k8s.io"
"""The only group without APIServices."""
MANAGED = "kube-aggregator.kubernetes.io/automanaged"
"""The label of APIServices that the API server manages; its value is one of the next two."""
ON_START = "onstart"
"""Of built-in groups: created at the start only."""
ALWAYS = "true"
"""Of custom resources: created and deleted with their definitions."""

GroupVersion = tuple[str, str]
"""`("autoscaling", "v2")`; the core group is `""`."""


class ApiServices(Reconciler[str]):
    """Reconciles APIServices. Keys are names of APIServices.

    Args:
        registry: the objects.
        built_in: the served groups and versions except those of custom resources.
        has_definitions: whether CustomResourceDefinitions are served.
    """

    name = "apiservice-registration"

    def __init__(self, registry: Registry, built_in: Iterable[GroupVersion], *, has_definitions: bool) -> None:
        self._registry = registry
        registered = [(group, version) for group, version in built_in if group != OWN_GROUP]
        self._built_in = {_name(group_version): group_version for group_version in registered}
        """The built-in groups and versions by the name of their APIService."""
        self._not_yet_synced = dict(self._built_in)
        """Those whose APIService was not synced since the start."""
        self._replaceable = {
            key for key, (group, _) in self._built_in.items() if group in group_priorities.OTHER_GROUPS
        }
        """The APIServices of metrics APIs, which adapters may replace."""
        self._has_definitions = has_definitions

    def watches(self) -> Sequence[Watched[str]]:
        """CustomResourceDefinitions, and deleted APIServices of metrics adapters."""
        api_services = Watched(RESOURCE, self._keys_of_replaced)
        return [Watched(DEFINITIONS, _keys_of_definition), api_services] if self._has_definitions else [api_services]

    def prime(self) -> Iterable[str]:
        """All served groups and versions, and all stored APIServices."""
        stored = (api_service["metadata"]["name"] for api_service in self._registry.list(RESOURCE))
        return {*self._built_in, *self._custom(), *stored}

    async def sync(self, key: str) -> float | None:
        """Create, update or delete one APIService."""
        api_service = self._registry.find(RESOURCE, "", key)
        if api_service is not None and key in self._replaceable and "service" in api_service["spec"]:
            return None  # an adapter has replaced it
        desired = self._desired(key)
        if desired is None:
            if api_service is not None and key not in self._built_in and _is_own(api_service):
                await self._registry.delete(RESOURCE, "", key, uid=api_service["metadata"]["uid"])
        elif api_service is None:
            await self._registry.create(RESOURCE, desired)
        elif api_service["spec"] != desired["spec"] and api_service["metadata"].get("labels", {}).get(MANAGED):
            await self._registry.update(RESOURCE, {**api_service, "spec": desired["spec"]})
        self._not_yet_synced.pop(key, None)
        return None

    def _desired(self, key: str) -> Object | None:
        """The APIService to store, None if the key is not served or was registered at the start."""
        if key in self._not_yet_synced or key in self._replaceable:
            return _api_service(self._built_in[key], ON_START)
        custom = self._custom().get(key)
        if custom is None or key in self._built_in:
            return None
        return _api_service(custom, ALWAYS)

    def _custom(self) -> dict[str, GroupVersion]:
        """The groups and versions of custom resources, by the name of their APIService."""
        definitions = self._registry.list(DEFINITIONS) if self._has_definitions else ()
        return {_name(served): served for definition in definitions for served in _served_versions(definition)}

    def _keys_of_replaced(self, event: ObjectEvent) -> Iterable[str]:
        """The name of a deleted APIService of a metrics API, otherwise none."""
        name = event.object["metadata"]["name"]
        return [name] if name in self._replaceable and event.type == "DELETED" else []


def _is_own(api_service: Object) -> bool:
    """Whether the API server manages an APIService and serves it itself, rather than a Service."""
    return MANAGED in api_service["metadata"].get("labels", {}) and "service" not in api_service["spec"]


def _name(group_version: GroupVersion) -> str:
    """The name of the APIService of a group and version (`v2.autoscaling`)."""
    group, version = group_version
    return f"{version}.{group}"


def _served_versions(definition: Object) -> Iterable[GroupVersion]:
    """The groups and versions that an established CustomResourceDefinition serves; none for others."""
    conditions = (definition.get("status") or {}).get("conditions") or []
    if any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
        for version in definition["spec"]["versions"]:
            if version.get("served"):
                yield definition["spec"]["group"], version["name"]


def _keys_of_definition(event: ObjectEvent) -> Iterable[str]:
    """The names of the APIServices of all versions of a changed definition."""
    spec = event.object["spec"]
    return [_name((spec["group"], version["name"])) for version in spec["versions"]]


def _api_service(group_version: GroupVersion, managed: str) -> Object:
    """The APIService of a group and version; `managed` is the value of its label, `ON_START` or `ALWAYS`."""
    group, version = group_version
    priority = group_priorities.of_version(group, version)
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": _name(group_version), "labels": {MANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": priority.group,
            "versionPriority": priority.version,
        },
    }
