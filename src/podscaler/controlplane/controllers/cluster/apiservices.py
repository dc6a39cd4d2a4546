"""The APIService registration controller: one APIService for each group and version that the API server serves.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; keys are names of APIServices
(`v2.autoscaling`). APIServices of built-in groups are created when the server starts and then left alone; those of
custom resources are created and deleted with their definitions. A metrics adapter may replace the APIService of a
metrics API; when that is deleted, the APIService that names no Service is created again. The priorities of a new
built-in group are in `api.group_priorities`.

Source: kube-apiserver's autoregister and crdregistration controllers (labels, priorities).
"""

from collections.abc import Iterable, Sequence

from podscaler.api import group_priorities
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

API_SERVICES = "apiservices.apiregistration.k8s.io"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
OWN_GROUP = "apiregistration.k8s.io"
"""The only group without APIServices: the aggregation layer itself serves it."""
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
        self._built_in = {
            _name_of((group, version)): (group, version) for group, version in built_in if group != OWN_GROUP
        }
        """The built-in groups and versions by the names of their APIServices."""
        self._unregistered = set(self._built_in)
        """The names of built-in APIServices that this process has not synced yet."""
        self._replaceable = {
            name for name, (group, _) in self._built_in.items() if group in group_priorities.LOWEST_PRIORITY_GROUPS
        }
        """The names of the APIServices of metrics APIs (and of `extensions`), which an adapter may replace."""
        self._has_definitions = has_definitions

    def watches(self) -> Sequence[Watched[str]]:
        """CustomResourceDefinitions (if they are served), and deleted APIServices of metrics APIs."""
        api_services = Watched(API_SERVICES, self._keys_of_replaced)
        if not self._has_definitions:
            return [api_services]
        return [Watched(DEFINITIONS, self._keys_of_definition), api_services]

    def prime(self) -> Iterable[str]:
        """The names of all APIServices that should exist or do: of served groups and versions, and stored ones."""
        stored = (api_service["metadata"]["name"] for api_service in self._registry.list(API_SERVICES))
        return {*self._built_in, *self._custom_versions(), *stored}

    async def sync(self, key: str) -> float | None:
        """Create, update or delete one APIService; returns None, as only changes need a sync. Raises StatusError."""
        api_service = self._registry.find(API_SERVICES, "", key)
        if api_service is not None and key in self._replaceable and _names_service(api_service):
            return None  # the APIService of an adapter
        if key in self._built_in and key not in self._unregistered and key not in self._replaceable:
            return None  # users may change or delete what was registered at the start
        desired = self._find_desired(key)
        if desired is None:
            if api_service is not None and _is_managed(api_service) and not _names_service(api_service):
                await self._registry.delete(API_SERVICES, "", key, uid=api_service["metadata"]["uid"])
        elif api_service is None:
            await self._registry.create(API_SERVICES, desired)
        elif api_service["spec"] != desired["spec"] and _is_managed(api_service):
            await self._registry.update(API_SERVICES, {**api_service, "spec": desired["spec"]})
        self._unregistered.discard(key)
        return None

    def _find_desired(self, key: str) -> Object | None:
        """The APIService to store; None if its group and version are not served."""
        if key in self._built_in:
            return _new_api_service(self._built_in[key], ON_START)
        custom = self._custom_versions().get(key)
        return None if custom is None else _new_api_service(custom, ALWAYS)

    def _custom_versions(self) -> dict[str, GroupVersion]:
        """The groups and versions of served custom resources, by the names of their APIServices."""
        definitions = self._registry.list(DEFINITIONS) if self._has_definitions else ()
        return {_name_of(version): version for definition in definitions for version in _served_versions(definition)}

    def _keys_of_definition(self, event: ObjectEvent) -> Iterable[str]:
        """The APIServices of a definition's versions, and stored ones of its group, whose versions may be gone."""
        spec = event.object["spec"]
        stored = [
            api_service["metadata"]["name"]
            for api_service in self._registry.list(API_SERVICES)
            if api_service["spec"].get("group") == spec["group"] and _is_managed(api_service)
        ]
        return {*stored, *(_name_of((spec["group"], version["name"])) for version in spec["versions"])}

    def _keys_of_replaced(self, event: ObjectEvent) -> Iterable[str]:
        """The name of a deleted APIService of a metrics API, which may have been an adapter's; otherwise none."""
        name = event.object["metadata"]["name"]
        return [name] if name in self._replaceable and event.type == "DELETED" else []


def _is_managed(api_service: Object) -> bool:
    """Whether the API server manages the APIService: users may remove the label to keep their changes."""
    return MANAGED in (api_service["metadata"].get("labels") or {})


def _names_service(api_service: Object) -> bool:
    """Whether another API server, which the APIService names by its Service, serves the group and version."""
    return "service" in api_service["spec"]


def _name_of(group_version: GroupVersion) -> str:
    """The name of the APIService of a group and version: `v2.autoscaling`."""
    group, version = group_version
    return f"{version}.{group}"


def _served_versions(definition: Object) -> Iterable[GroupVersion]:
    """The groups and versions that an established CustomResourceDefinition serves."""
    conditions = (definition.get("status") or {}).get("conditions") or []
    if any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
        for version in definition["spec"]["versions"]:
            if version.get("served"):
                yield definition["spec"]["group"], version["name"]


def _new_api_service(group_version: GroupVersion, managed: str) -> Object:
    """The APIService of a group and version; `managed` is the value of the label MANAGED."""
    group, version = group_version
    priority = group_priorities.of_version(group, version)
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": _name_of(group_version), "labels": {MANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": priority.group,
            "versionPriority": priority.version,
        },
    }
