"""Prepares objects for create and update: sets server-side metadata, applies the kind's strategy, validates.

`registry.object_writer` calls it inside a transaction. `complete_new` and `complete_update` change the new object in
place (uid, creationTimestamp, generation); the rules of a kind come from its `Strategy` (`api.resource.resources`): a
new step of all kinds goes into these functions, one of a kind into a hook. The API server's handlers call
`set_namespace`. metadata.managedFields belong to `registry.field_managers`.

Source: docs/spec/api.md 2.7 (metadata) and 3 (Create, update, status update); the API conventions on metadata;
tests/conformance/golden/update-hpa.jsonl.
"""

from podscaler.api.machinery import numbers
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import api_errors, semantics
from podscaler.api.resource import metadata as metadata_rules
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.schema import canonical, schema
from podscaler.base.clock import rfc3339
from podscaler.controlplane.storage.entries import Entry

_OMITTED_WHEN_EMPTY = ("labels", "annotations", "ownerReferences", "finalizers", "generateName")
_KEPT_IF_MISSING = ("name", "namespace", "uid")


def set_namespace(obj: Object, namespace: str) -> None:
    """Set the namespace of a request in `obj`, in place; empty for cluster-scoped objects.

    Handlers call it with what a client sent, and admission with what webhooks made of it. Raises StatusError 400 if
    `obj` names another namespace.
    """
    metadata = obj.setdefault("metadata", {})
    namespace_in_object = metadata.get("namespace", "")
    if namespace and namespace_in_object and namespace_in_object != namespace:
        raise api_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def complete_new(resource: Resource, obj: Object, *, uid: str, now_ns: int) -> None:
    """Set the metadata of a new object that has a name, and apply the kind's create strategy.

    `now_ns` is the time of the create, nanoseconds since the epoch.
    """
    metadata = obj["metadata"]
    for name in ("managedFields", "selfLink", "generation"):
        metadata.pop(name, None)
    if not resource.namespaced:
        metadata.pop("namespace", None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = rfc3339(now_ns)
    resource.strategy.prepare_create(obj)
    metadata = obj["metadata"]
    metadata["creationTimestamp"] = rfc3339(now_ns)  # again: the strategy may have replaced the metadata
    if resource.strategy.has_generation:
        metadata["generation"] = 1
    _remove_empty(metadata)


def validate_new(resource: Resource, obj: Object) -> list[FieldError]:
    """The field errors of a new object, in kube-apiserver's order."""
    errors = resource.strategy.validate(obj, None)
    if errors and resource.strategy.is_checked_before_metadata:
        return errors
    return metadata_rules.validate_metadata(resource, obj, None) + errors


def complete_update(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Carry over server-side metadata from `old` to `new`, apply the update strategy, and count the generation.

    `subresource` is `status`, a key of `Strategy.prepare_subresource_update`, or empty for the object itself.
    """
    metadata = new.setdefault("metadata", {})
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    _call_update_hook(resource, new, old, subresource)
    metadata = new["metadata"]  # again: the strategy may have replaced it
    old_metadata = old["metadata"]
    for name in _KEPT_IF_MISSING:
        if not metadata.get(name) and name in old_metadata:
            metadata[name] = old_metadata[name]
    _copy_or_remove("creationTimestamp", metadata, old_metadata)
    if "deletionTimestamp" in old_metadata:  # one that only the client sent is a field error
        metadata["deletionTimestamp"] = old_metadata["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old_metadata:  # a changed one is a field error
        metadata.setdefault("deletionGracePeriodSeconds", old_metadata["deletionGracePeriodSeconds"])
    _copy_or_remove("generation", metadata, old_metadata)
    may_raise_generation = (
        resource.strategy.has_generation
        and subresource != "status"
        and subresource not in resource.strategy.prepare_subresource_update
    )
    if may_raise_generation and _spec_differs(resource, new, old):
        metadata["generation"] = old_metadata.get("generation", 0) + 1
    _remove_empty(metadata)


def validate_update(resource: Resource, new: Object, old: Object, subresource: str) -> list[FieldError]:
    """The field errors of `new` as an update of `old`, in kube-apiserver's order."""
    errors = metadata_rules.validate_metadata(resource, new, old)
    if subresource == "status":
        errors += resource.strategy.validate_status(new, old)
    elif not subresource:
        errors += resource.strategy.validate(new, old)
    elif subresource in resource.strategy.validate_subresource_update:
        errors += resource.strategy.validate_subresource_update[subresource](new, old)
    return errors


def stored_form(resource: Resource, obj: Object, old: Object | None = None) -> Object:
    """`obj` in its stored form: fields in the schema's order, without empty values.

    Kinds without a schema use their strategy's `stored_form`.

    Args:
        resource: the kind under which the object is stored.
        obj: the object in the storage version.
        old: a stored object; the parts that `obj` shares with it (the identical dicts) are in that form already.

    Raises ConversionNeeded for a kind that a webhook converts.
    """
    message = _storage_message(resource)
    return canonical.canonical(obj, message, stored=old) if message else resource.strategy.stored_form(obj)


def check_version(resource: Resource, new: Object, stored: Entry) -> None:
    """Compare the resourceVersion that a client sent with the stored one.

    Raises StatusError 409 if it is another one, 500 if it is not a number; 422 if there is none (or 0) and the kind
    requires one.
    """
    sent = str((new.get("metadata") or {}).get("resourceVersion") or "")
    if sent in ("", "0"):
        if not resource.strategy.allows_unconditional_update:
            raise api_errors.unconditional_update(resource, stored.name)
        return
    try:
        revision = numbers.parse_uint(sent, 64)
    except ValueError as error:
        raise api_errors.error_without_reason(str(error)) from None
    if revision != stored.revision:
        raise api_errors.conflict(resource, stored.name)


def is_same(new: Object, old: Object) -> bool:
    """Whether `new` and `old` are equal except for the resourceVersion."""
    return _without_resource_version(new) == _without_resource_version(old)


def _storage_message(resource: Resource) -> str:
    """The name of the storage version in `api.schema.schema`, empty for kinds without a schema."""
    messages = (served.message for served in resource.versions if served.version == resource.storage_version)
    message = next(messages, "")
    return message if schema.find_message(message) else ""


def _call_update_hook(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Call the hook of the kind for an update of the object or of a subresource."""
    strategy = resource.strategy
    if not subresource:
        strategy.prepare_update(new, old)
    elif subresource == "status":
        strategy.prepare_status_update(new, old)
    else:
        strategy.prepare_subresource_update[subresource](new, old)


def _spec_differs(resource: Resource, new: Object, old: Object) -> bool:
    """Whether the parts of a kind whose changes count in metadata.generation differ in meaning."""
    spec_of = resource.strategy.spec_of
    return not semantics.same(spec_of(new), spec_of(old))


def _copy_or_remove(name: str, metadata: Object, old_metadata: Object) -> None:
    """Set a field of metadata to the old one, in place; it is removed if the old object lacks it."""
    if name in old_metadata:
        metadata[name] = old_metadata[name]
    else:
        metadata.pop(name, None)


def _remove_empty(metadata: Object) -> None:
    """Remove empty maps, lists and texts of metadata, in place, as serialization in Go omits them."""
    for name in _OMITTED_WHEN_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]


def _without_resource_version(obj: Object) -> Object:
    """A copy of the object without its resourceVersion; its other parts are shared."""
    metadata = {name: field_value for name, field_value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
