"""Applies the API server's defaults and validation to the objects of manifests, without a server.

Called by `podscaler.lint.model.reading` and `podscaler.simulation.files`: `find_record`, then `with_defaults`, then
`api_errors`. Autoscalers of all versions become those of autoscaling/v2. Callers set a missing namespace. A new kind is
an entry of `catalog.RESOURCES`, a removed version of autoscalers one of `hpa_removed_versions`.

Source: docs/spec/api.md 2 (Validation) and 2.9 (Other errors).
"""

from functools import cache

from podscaler.api.kinds import catalog
from podscaler.api.kinds.autoscaling import conversion, hpa_removed_versions
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import metadata, semantics
from podscaler.api.resource.resources import Object, Resource, Version

# the name and the uid that the server would generate; validation needs some
_PLACEHOLDER_NAME = "generated"
_PLACEHOLDER_UID = "00000000-0000-0000-0000-000000000000"


def find_record(api_version: str, kind: str) -> tuple[Resource, Version] | None:
    """The record of a kind, and that one of its versions; None for one that the API server does not have."""
    return _records_by_type().get((api_version, kind))


@cache
def _records_by_type() -> dict[tuple[str, str], tuple[Resource, Version]]:
    """(apiVersion, kind) -> the record and the version, for all stored kinds and the old versions of autoscalers."""
    records = {}
    for resource in hpa_removed_versions.with_removed_versions(catalog.RESOURCES):
        if not resource.stored:
            continue
        for version in resource.versions:
            api_version = f"{resource.group}/{version.version}" if resource.group else version.version
            records[api_version, resource.kind] = (resource, version)
    return records


def with_defaults(decoded: Object, resource: Resource, version: Version) -> Object:
    """The object with the API's defaults, in the storage version; an autoscaler in autoscaling/v2.

    Args:
        decoded: as `podscaler.api.schema.decoding` decodes the message of the version; it is not changed.

    Raises DecodeError for an annotation that the conversion cannot read (DaemonSet, autoscaling/v2beta2).
    """
    obj = semantics.copied(decoded)
    version.default(obj)
    stored = version.to_storage(obj)
    if resource.kind == conversion.KIND:  # the form in which clients read autoscaling/v2, not that of the store
        return conversion.VERSIONS[conversion.STORED_API_VERSION].from_storage(stored)
    return stored


def api_errors(resource: Resource, obj: Object) -> list[FieldError]:
    """The errors of a new object, in the order of the API server.

    The object is checked with a placeholder for its uid, and for its name if it has only a generateName.

    Args:
        obj: of `with_defaults`; it is not changed.
    """
    named_object = semantics.copied(obj)
    object_metadata = named_object.setdefault("metadata", {})
    if not object_metadata.get("name") and object_metadata.get("generateName"):
        object_metadata["name"] = _PLACEHOLDER_NAME
    object_metadata.setdefault("uid", _PLACEHOLDER_UID)
    resource.strategy.prepare_create(named_object)
    return metadata.validate_metadata(resource, named_object, None) + resource.strategy.validate(named_object, None)
