"""Makes the resource records of a CustomResourceDefinition, by which the API server serves its objects.

Called by the API server whenever a definition changes. The storage version has the record under which objects are
stored; every other served version has a record (a face) with its own schema, columns and subresources, which reads and
writes the same objects.

Invariants: conversion changes only the apiVersion (strategy `None`); an object that is read or written in a version is
pruned by the schema of that version, as upstream does.

Source: the API documentation of CustomResourceDefinition v1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from podscaler.api.crd import (
    columns,
    decoding,
    defaulting,
    json_path,
    list_types,
    openapi,
    pruning,
    scale,
    structural,
    validation,
)
from podscaler.api.crd.structural import ABSENT, META_FIELDS, Structural
from podscaler.api.crd.version_order import sort_key
from podscaler.api.machinery.field import FieldError, invalid, invalid_object
from podscaler.api.managed_fields import structural_types
from podscaler.api.resource import semantics, status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version
from podscaler.api.schema import canonical
from podscaler.base.errors import StatusError

if TYPE_CHECKING:
    from podscaler.api.crd.rules import RuleSet


@dataclass(frozen=True, slots=True)
class Records:
    """The resource records of a definition.

    Attributes:
        stored: of the storage version; objects are stored under its `Resource.key`.
        faces: of the other served versions.
        is_stored_version_served: whether `stored` has a path, too.
    """

    stored: Resource
    faces: tuple[Resource, ...] = ()
    is_stored_version_served: bool = True

    @property
    def served(self) -> tuple[Resource, ...]:
        """The records that have paths."""
        return (self.stored, *self.faces) if self.is_stored_version_served else self.faces


@dataclass(frozen=True, slots=True, eq=False)
class _Definition:
    """One version of a definition.

    Attributes:
        crd: the definition.
        version: one of its versions.
        schemas: the parsed schemas of all its versions, by apiVersion.
        rules: the CEL rules of the version's schema, None without.
    """

    crd: Object
    version: Object
    schemas: Mapping[str, Structural]
    rules: "RuleSet | None"

    @property
    def schema(self) -> Structural:
        return self.schemas[self.api_version]

    @property
    def subresources(self) -> Object:
        found: Object = self.version.get("subresources") or {}
        return found

    @property
    def group(self) -> str:
        return str(self.crd["spec"]["group"])

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version['name']}"

    @property
    def names(self) -> Object:
        return names_of(self.crd)

    @property
    def kind(self) -> str:
        return str(self.names["kind"])

    @property
    def scale(self) -> Object | None:
        return self.subresources.get("scale")

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


def names_of(crd: Object) -> Object:
    """The names under which objects are served: status.acceptedNames, or those of the spec before they are accepted."""
    accepted = (crd.get("status") or {}).get("acceptedNames") or {}
    names: Object = accepted if accepted.get("plural") and accepted.get("kind") else crd["spec"]["names"]
    return names


def storage_key(crd: Object) -> str:
    """The `Resource.key` under which the objects of a definition are stored."""
    return f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"


def of(crd: Object) -> Records:
    """The records of a definition whose names were accepted."""
    versions, group = crd["spec"]["versions"], crd["spec"]["group"]
    schemas = {f"{group}/{one['name']}": structural.parse(schema_of(one)) for one in versions}
    kept = _definition(crd, next(one for one in versions if one.get("storage")), schemas)
    stored = _record(kept, kept)
    others = [one for one in versions if one.get("served") and one["name"] != kept.version["name"]]
    faces = tuple(_record(_definition(crd, one, schemas), kept) for one in others)
    return Records(stored, faces, bool(kept.version.get("served")))


def _definition(crd: Object, version: Object, schemas: Mapping[str, Structural]) -> _Definition:
    schema = schemas[f"{crd['spec']['group']}/{version['name']}"]
    if not structural.has_rules(schema):
        return _Definition(crd, version, schemas, None)
    from podscaler.api.crd import rules

    return _Definition(crd, version, schemas, rules.RuleSet(schema))


def schema_of(version: Object) -> Object:
    """The OpenAPI v3 schema of a version; an object of anything where it has none."""
    anything: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or anything
    return schema


def _record(shown: _Definition, kept: _Definition) -> Resource:
    """The record of the version `shown` of objects that are stored as `kept`."""
    names, name = shown.names, shown.version["name"]
    is_face = name != kept.version["name"]
    as_served = partial(_read, shown)
    return Resource(
        group=shown.group,
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        versions=(_version(shown, kept),),
        storage_version=kept.version["name"],
        printer=columns.printer(shown.version.get("additionalPrinterColumns") or (), as_served),
        namespaced=shown.crd["spec"]["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        strategy=_strategy(shown, kept),
        has_status=shown.has_status,
        scale=scale.mapping(shown.scale) if shown.scale is not None else None,
        fields=selectable_fields(shown.version.get("selectableFields") or ()),
        stored_as=storage_key(shown.crd) if is_face else "",
        face=name if is_face else "",
        is_custom=True,
    )


def selectable_fields(definitions: Sequence[Object]) -> Callable[[Object], Mapping[str, str]]:
    """Reads the selectable fields of an object: `{"spec.color": "blue"}`; an absent one is the empty text.

    Args:
        definitions: a version's `selectableFields` (KEP-4358).
    """
    paths = {one["jsonPath"].removeprefix("."): one["jsonPath"] for one in definitions}

    def read(obj: Object) -> Mapping[str, str]:
        return {name: _field_text(json_path.found(obj, path)) for name, path in paths.items()}

    return read


def _field_text(values: list[Any]) -> str:
    if not values or values[0] is None or isinstance(values[0], dict | list):
        return ""
    first = values[0]
    return str(first).lower() if isinstance(first, bool) else str(first)


def _version(shown: _Definition, kept: _Definition) -> Version:
    return Version(
        shown.version["name"],
        "",
        default=lambda obj: defaulting.set_defaults(obj, shown.schema),
        to_storage=partial(_to_storage, shown, kept),
        from_storage=partial(_from_storage, shown, kept),
        deprecation=deprecation(shown.crd, shown.version),
        decode=lambda value: decoding.decoded(value, shown.group, shown.schemas),
        openapi=partial(_components, shown),
        fields_type=structural_types.of_kind(shown.schema.source),
    )


def _components(shown: _Definition) -> dict[str, Object]:
    gvk = {"group": shown.group, "version": shown.version["name"], "kind": shown.kind}
    list_kind = shown.names.get("listKind") or f"{shown.kind}List"
    return openapi.components(shown.schema.source, gvk, plural=shown.names["plural"], list_kind=list_kind)


def deprecation(crd: Object, version: Object) -> str:
    """The warning to clients of a deprecated version, empty for one that is not deprecated."""
    if not version.get("deprecated"):
        return ""
    own: str | None = version.get("deprecationWarning")
    if own is not None:
        return own
    group, kind, name = crd["spec"]["group"], crd["spec"]["names"]["kind"], version["name"]
    text = f"{group}/{name} {kind} is deprecated"
    usable = [one["name"] for one in crd["spec"]["versions"] if one.get("served") and not one.get("deprecated")]
    newer = sorted((one for one in usable if sort_key(one) < sort_key(name)), key=sort_key)
    return f"{text}; use {group}/{newer[0]} {kind}" if newer else text


def _check_type(shown: _Definition, obj: Object) -> Object:
    """The object. Raises StatusError 422 where its kind or apiVersion is another one."""
    found = []
    kind, api_version = obj.get("kind", ""), obj.get("apiVersion", "")
    if kind != shown.kind:
        found.append(invalid("kind", kind, f"must be {shown.kind}"))
    if api_version != shown.api_version:
        found.append(invalid("apiVersion", api_version, f"must be {shown.api_version}"))
    if found:
        name = (obj.get("metadata") or {}).get("name", "")
        raise invalid_object(group=api_version.rpartition("/")[0], kind=kind, name=name, errors=found)
    return obj


def _from_storage(shown: _Definition, kept: _Definition, obj: Object) -> Object:
    _refuse_webhook(shown, kept)
    return _read(shown, obj)


def _to_storage(shown: _Definition, kept: _Definition, obj: Object) -> Object:
    checked = _check_type(shown, obj)
    _refuse_webhook(shown, kept)
    return checked


def _refuse_webhook(shown: _Definition, kept: _Definition) -> None:
    """Raise StatusError 500 where a webhook would have to convert objects."""
    strategy = (shown.crd["spec"].get("conversion") or {}).get("strategy")
    if strategy == "Webhook" and shown.api_version != kept.api_version:
        why = "this server does not call conversion webhooks"
        raise StatusError(f"conversion webhook for {kept.api_version}, Kind={kept.kind} failed: {why}", code=500)


def _read(shown: _Definition, obj: Object) -> Object:
    """A stored object, changed in place, as it is served: the present schema applies to old objects, too."""
    written = shown.schemas.get(obj.get("apiVersion", ""), shown.schema)
    pruning.prune(obj, written)
    defaulting.drop_nulls(obj, written)
    defaulting.set_defaults(obj, written)
    if written is not shown.schema:  # removes defaults of the version that was stored
        pruning.prune(obj, shown.schema)
    obj["apiVersion"] = shown.api_version
    return obj


def _strategy(shown: _Definition, kept: _Definition) -> Strategy:
    return Strategy(
        prepare_create=partial(_prepare_create, shown),
        prepare_update=partial(_prepare_update, shown),
        prepare_status_update=_prepare_status_update,
        validate=partial(_field_errors, shown),
        validate_status=partial(_status_errors, shown),
        has_generation=True,
        spec_of=partial(_content, shown),
        stored_form=partial(_stored_form, kept),
        allows_bare_finalizers=True,
        allows_unconditional_update=False,
        warnings=partial(_warnings, shown),
    )


def _prepare_create(shown: _Definition, new: Object) -> None:
    """Raises StatusError 403 while the definition is being deleted."""
    if "deletionTimestamp" in shown.crd["metadata"]:
        name, group, plural = new["metadata"].get("name", ""), shown.group, shown.names["plural"]
        why = "create not allowed while custom resource definition is terminating"
        text = f'{plural}.{group} "{name}" is forbidden: {why}'
        details = {"name": name, "group": group, "kind": plural}
        raise StatusError(text, code=403, reason="Forbidden", details=details)
    if shown.has_status:
        new.pop("status", None)


def _prepare_update(shown: _Definition, new: Object, old: Object) -> None:
    if shown.has_status:
        status_subresource.keep_status(new, old)


def _prepare_status_update(new: Object, old: Object) -> None:
    """Everything but the status keeps its stored value, metadata included."""
    status = {"status": new["status"]} if "status" in new else {}
    version = new["metadata"].get("resourceVersion", "")
    new.clear()
    new.update(semantics.copied(old))
    new.pop("status", None)
    new.update(status)
    if version:
        new["metadata"]["resourceVersion"] = version


def _content(shown: _Definition, obj: Object) -> bytes:
    """The part of an object whose changes raise the generation: all but metadata and the status (if a subresource)."""
    content = _read(shown, semantics.copied({**obj, "metadata": {}}))
    others = META_FIELDS | ({"status"} if shown.has_status else set())
    return msgspec.json.encode({name: content[name] for name in content if name not in others}, order="sorted")


def _field_errors(shown: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    found = _schema_errors(shown, new, old)
    if shown.scale is not None:
        found += scale.spec_errors(new, shown.scale) + scale.status_errors(new, shown.scale)
    found += validation.embedded_resource_errors(new, shown.schema)
    return _with_rules(shown, new, old, found)


def _status_errors(shown: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    found = _schema_errors(shown, new, old)
    if shown.scale is not None:
        found += scale.status_errors(new, shown.scale)
    return _with_rules(shown, new, old, found)


def _schema_errors(shown: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    return validation.field_errors(_typed(shown, new), None if old is None else _typed(shown, old), shown.schema)


def _with_rules(shown: _Definition, new: Object, old: Object | None, found: list[FieldError]) -> list[FieldError]:
    """The errors found so far, those of lists, and of rules unless the object is invalid in a way that blocks them."""
    if old is None or not list_types.field_errors(old, shown.schema):
        found += list_types.field_errors(new, shown.schema)
    if shown.rules is None:
        return found
    if any(error.reason in _BLOCKING for error in found):
        return [*found, invalid("<nil>", None, _UNCHECKED)]
    before = ABSENT if old is None else _typed(shown, old)
    return found + shown.rules.judged(_typed(shown, new), before).errors


_BLOCKING = frozenset(f"FieldValue{name}" for name in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _typed(shown: _Definition, obj: Object) -> Object:
    """The object with its version's apiVersion and kind, which a schema may restrict."""
    return {**obj, "apiVersion": shown.api_version, "kind": shown.kind}


def _stored_form(kept: _Definition, obj: Object) -> Object:
    """The object as it is stored, changed in place: pruned by the storage version's schema, as upstream does."""
    pruning.prune(obj, kept.schema)
    obj["metadata"] = canonical.canonical(obj["metadata"], decoding.OBJECT_META)
    return obj


def _warnings(shown: _Definition, new: Object, old: Object | None) -> list[str]:
    """Rules that unchanged values violate; added finalizers without a domain."""
    broken: list[str] = []
    if shown.rules is not None and old is not None:
        judgement = shown.rules.judged(_typed(shown, new), _typed(shown, old))
        broken = [str(error) for error in judgement.warnings]
    return broken + _finalizer_warnings(new, old)


def _finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    before: list[str] = ((old or {}).get("metadata") or {}).get("finalizers") or []
    added = {name for name in new["metadata"].get("finalizers") or [] if name not in before}
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
        "accidental conflicts with other finalizer writers"
        for name in sorted(added)
        if "/" not in name and name not in _SYSTEM_FINALIZERS
    ]


_SYSTEM_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
