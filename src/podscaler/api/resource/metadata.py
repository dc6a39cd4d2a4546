"""Validates `metadata`, by rules that all kinds share: names, labels, annotations, owner references, finalizers.

The API server calls `validate_metadata` before a kind's own validation; kinds whose specs carry labels or annotations
call `label_errors` and `annotation_errors`. A kind whose names have another rule than DNS subdomains: an entry of
_NAME_RULES.

Source: docs/spec/api.md 2.7 (metadata); golden captures of rejected objects.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required, too_long
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object, Resource

ANNOTATIONS_MAX_BYTES = 256 * 1024

_NameRule = Callable[[str], list[str]]

_RBAC = "rbac.authorization.k8s.io"
_KINDS_WITH_PATH_SEGMENT_NAMES = (
    "apiservices.apiregistration.k8s.io",
    "events",
    "poddisruptionbudgets.policy",
    *(f"{plural}.{_RBAC}" for plural in ("clusterrolebindings", "clusterroles", "rolebindings", "roles")),
)
_NAME_RULES: Mapping[str, _NameRule] = {
    **dict.fromkeys(_KINDS_WITH_PATH_SEGMENT_NAMES, names.path_segment_errors),
    "clustertrustbundles.certificates.k8s.io": lambda _name: [],
    **dict.fromkeys(("namespaces", "services", "statefulsets.apps"), names.dns_label_errors),
}
"""`Resource.storage_key` -> rule of object names; names of other kinds are DNS subdomains.

The rule for ClusterTrustBundles depends on their spec, so that their own validation has it.
"""

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
"""Finalizers that need no domain prefix."""


def validate_metadata(resource: Resource, new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of the metadata of an object to be stored, in kube-apiserver's order.

    Args:
        resource: the kind of the object.
        new: the object; a generated name is already in its `metadata.name`.
        old: the stored object; None on create.
    """
    object_metadata = new.get("metadata") or {}
    if old is None:
        errors = _name_errors(resource, object_metadata)
    else:
        errors = _change_errors(object_metadata, old.get("metadata") or {})
    errors += label_errors(object_metadata.get("labels") or {}, "metadata.labels")
    errors += annotation_errors(object_metadata.get("annotations") or {}, "metadata.annotations")
    errors += _owner_errors(object_metadata.get("ownerReferences") or [], "metadata.ownerReferences")
    finalizers = object_metadata.get("finalizers") or []
    unqualified_errors = [] if resource.strategy.allows_bare_finalizers else _unqualified_errors(finalizers)
    return [*errors, *_finalizer_errors(finalizers), *unqualified_errors]


def _name_errors(resource: Resource, object_metadata: Object) -> list[FieldError]:
    """Field errors of `name` and `generateName` of a new object, by the rule of its kind."""
    rule = _NAME_RULES.get(resource.storage_key, names.dns_subdomain_errors)
    prefix = object_metadata.get("generateName", "")
    errors = checks.well_formed_if_set(
        prefix, "metadata.generateName", lambda generate_name: rule(names.mask_trailing_dash(generate_name))
    )
    message = "name or generateName is required"
    return errors + checks.required_form(object_metadata.get("name", ""), "metadata.name", rule, message)


def label_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    """The field errors of a map of labels; each is at `path` itself and shows the key or the value."""
    errors = []
    for key in sorted(labels):
        errors += checks.well_formed(key, path, names.label_key_errors)
        errors += checks.well_formed(labels[key], path, names.label_value_errors)
    return errors


def annotation_errors(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    """The field errors of a map of annotations: keys that are no qualified names, too much text in sum."""
    errors = []
    for key in sorted(annotations):
        errors += [invalid(path, key, message) for message in names.label_key_errors(key.lower())]
    total_bytes = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    return errors + ([too_long(path, ANNOTATIONS_MAX_BYTES)] if total_bytes > ANNOTATIONS_MAX_BYTES else [])


def _owner_errors(owners: list[Object], path: str) -> list[FieldError]:
    """The field errors of owner references: missing members, more than one controller."""
    errors = []
    controllers: list[str] = []
    for index, owner in enumerate(owners):
        errors += _owner_reference_errors(owner, f"{path}[{index}]")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind', '')}/{owner.get('name', '')}")
    if len(controllers) > 1:
        message = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        errors.append(invalid(path, [_owner_json(owner) for owner in owners], message))
    return errors


def _owner_reference_errors(owner: Object, path: str) -> list[FieldError]:
    """Field errors of one owner reference; an Event cannot be an owner."""
    api_version = owner.get("apiVersion", "")
    group, _, version = api_version.rpartition("/")
    errors = []
    if not api_version:
        errors.append(required(f"{path}.apiVersion", "must not be empty"))
    elif "/" in group or not version:
        errors.append(invalid(f"{path}.apiVersion", api_version, "must be <group>/<version> or <version>"))
    errors += [
        required(f"{path}.{field}", "must not be empty") for field in ("kind", "name", "uid") if not owner.get(field)
    ]
    if (group, version, owner.get("kind")) == ("", "v1", "Event"):
        errors.append(invalid(path, _owner_json(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _owner_json(owner: Object) -> dict[str, Any]:
    """The reference with its members in the order in which Go prints them."""
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {key: owner[key] for key in order if key in owner}


def _finalizer_errors(finalizers: list[str]) -> list[FieldError]:
    """Errors of the finalizers: their names, and two that exclude each other."""
    errors = []
    for name in finalizers:
        errors += checks.well_formed(name, "metadata.finalizers", names.label_key_errors)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        message = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", finalizers, message))
    return errors


def _unqualified_errors(finalizers: list[str]) -> list[FieldError]:
    """Field errors of finalizers without a domain that are none of STANDARD_FINALIZERS."""
    message = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"metadata.finalizers[{index}]", name, message)
        for index, name in enumerate(finalizers)
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """Field errors of an update: immutable fields, and finalizers that are added during deletion."""
    errors = []
    if old.get("deletionTimestamp"):
        errors += _added_finalizer_errors(new.get("finalizers") or [], old.get("finalizers") or [])
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in new and new[key] != old.get(key):
            errors.append(invalid(f"metadata.{key}", new[key], checks.IMMUTABLE))
    return errors


def _added_finalizer_errors(new_finalizers: list[str], old_finalizers: list[str]) -> list[FieldError]:
    """An error that names the new finalizers, if there are some."""
    added_names = [name for name in new_finalizers if name not in old_finalizers]
    if not added_names:
        return []
    names_text = ", ".join(json.dumps(name) for name in sorted(added_names))
    message = (
        f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names_text}}}"
    )
    return [forbidden("metadata.finalizers", message)]
