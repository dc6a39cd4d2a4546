"""Resource definition of CustomResourceDefinition (apiextensions.k8s.io/v1).

`podscaler.controlplane.controllers.cluster.custom_resources` serves the custom resources that a definition defines.
RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. `crd_validation` validates definitions. A new field needs regenerated
type facts (CONTRIBUTING.md), its default here and its validation there; a new column, a cell in `_row`.

Source: the API reference of apiextensions.k8s.io/v1; docs/spec/api.md 5 (Scale subresource);
tests/conformance/golden/scale.jsonl.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.crd import version_order
from podscaler.api.kinds.apiextensions import crd_conditions, crd_validation
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

KEY = "customresourcedefinitions.apiextensions.k8s.io"
"""`PLURAL.GROUP` of this resource, by which the API server looks its record up."""
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a deleted definition until all its objects are gone."""
_DEFAULT_SERVICE_PORT = 443
"""The default port of the Service of a conversion webhook."""


def set_defaults(crd: Object) -> None:
    """API defaults, in place: names by the kind, no conversion, the port of a webhook's Service."""
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", _DEFAULT_SERVICE_PORT)


def _prepare_create(new: Object) -> None:
    """Sets the first status, in place; the controller adds names and conditions."""
    new["status"] = {"storedVersions": _stored_versions(new, [])}


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status, and adds the storage version to the stored versions, in place."""
    new["status"] = semantics.copied(old.get("status") or {})
    new["status"]["storedVersions"] = _stored_versions(new, new["status"].get("storedVersions") or [])


def _stored_versions(crd: Object, old_names: list[str]) -> list[str]:
    """Names of the versions in which objects may be stored: `old_names`, and the present storage version."""
    versions = crd["spec"].get("versions") or []
    storage_name = next((version.get("name", "") for version in versions if version.get("storage")), None)
    return old_names if storage_name is None or storage_name in old_names else [*old_names, storage_name]


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps all but the status, even labels, in place; resourceVersion stays for the check of conflicts."""
    status = new.get("status") or {}
    status["storedVersions"] = status.get("storedVersions") or _stored_versions(old, [])
    resource_version = new["metadata"].get("resourceVersion", "")
    new.clear()
    new.update(semantics.copied(old) | {"status": status})
    if resource_version:
        new["metadata"]["resourceVersion"] = resource_version


def _prepare_delete(crd: Object) -> None:
    """Adds FINALIZER and the condition Terminating at the first delete, in place; grace period and generation stay."""
    metadata = crd["metadata"]
    metadata.pop("deletionGracePeriodSeconds", None)  # kube-apiserver sets none on definitions
    if FINALIZER in (metadata.get("finalizers") or ()):
        return
    metadata.setdefault("finalizers", []).append(FINALIZER)
    metadata["generation"] = max(1, metadata.get("generation", 1) - 1)  # undoes the increase of the delete
    crd_conditions.mark_for_deletion(crd, metadata["deletionTimestamp"])


def _is_not_marked(crd: Object) -> bool:
    """The hook `is_held`: the first delete only sets the deletionTimestamp, even if there is no finalizer yet."""
    return "deletionTimestamp" not in crd["metadata"]


def _row(crd: Object, now_ns: int) -> list[Any]:
    """The cells of a table row, in the order of the columns in RESOURCE."""
    metadata, spec = crd["metadata"], crd["spec"]
    return [
        metadata.get("name", ""),
        spec.get("scope", ""),
        ",".join(_shown_versions(spec.get("versions") or [])),
        metadata.get("creationTimestamp"),
        spec.get("group", ""),
        spec["names"].get("kind", ""),
        ",".join(spec["names"].get("shortNames") or []),
        crd_conditions.is_true(crd, crd_conditions.ESTABLISHED),
    ]


def _shown_versions(versions: list[Object]) -> Iterator[str]:
    """Yields the names of the versions that are served, the preferred one first; the storage version is marked."""
    storage_by_name = {version.get("name", ""): version.get("storage") for version in versions if version.get("served")}
    for name in sorted(storage_by_name, key=version_order.sort_key):
        yield f"{name}(storage)" if storage_by_name[name] else name


RESOURCE = Resource(
    group="apiextensions.k8s.io",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    versions=(Version("v1", "apiextensions/v1.CustomResourceDefinition", default=set_defaults),),
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=crd_validation.validate,
        validate_status=crd_validation.validate_status,
        has_generation=True,
        prepare_delete=_prepare_delete,
        is_held=_is_not_marked,
        allows_bare_finalizers=True,
        allows_unconditional_update=False,
        warnings=crd_validation.warnings,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the definition."),
            Column("Scope", description="Whether its objects are in namespaces."),
            Column("Versions", description="The versions that are served."),
            Column("Created At", "date", description="When the definition was created."),
            Column("Group", description="API group of its objects.", priority=1),
            Column("Kind", description="Kind of its objects.", priority=1),
            Column("ShortNames", description="Other names of the resource.", priority=1),
            Column("Established", "boolean", description="Whether its objects can be stored.", priority=1),
        ),
        row=_row,
        empty_is_null=True,
    ),
)
