"""Makes the records (`api.resource.resources.Resource`) of a CustomResourceDefinition, to serve its objects.

    of(definition).served      one Resource for each served version of the definition

Called by the API server whenever a definition changes. The storage version has the record under which objects are
stored; every other served version has a record (a face) with its own schema, columns and subresources, which reads and
writes the same objects. `served` is the version of a request throughout, `stored_version` the storage version.

Invariants: conversion changes only the apiVersion (strategy `None`); an object that is read or written in a version is
pruned by the schema of that version, as in kube-apiserver.

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
from podscaler.api.resource import metadata, semantics, status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version
from podscaler.api.schema import canonical
from podscaler.base.errors import StatusError

if TYPE_CHECKING:
    from podscaler.api.crd.rules import RuleSet


@dataclass(frozen=True, slots=True)
class Records:
    """The resource records of a definition.

    Attributes:
        stored: the record of the storage version; objects are stored under its `Resource.key`.
        faces: the records of the other served versions.
        is_stored_version_served: whether the storage version is served, too.
    """

    stored: Resource
    faces: tuple[Resource, ...] = ()
    is_stored_version_served: bool = True

    @property
    def served(self) -> tuple[Resource, ...]:
        """The records of the served versions."""
        return (self.stored, *self.faces) if self.is_stored_version_served else self.faces


@dataclass(frozen=True, slots=True, eq=False)
class _Definition:
    """One version of a definition.

    Attributes:
        crd: the definition.
        version: the entry of its `spec.versions`.
        schemas: the parsed schemas of all versions of the definition, by apiVersion.
        rules: the CEL rules of the version's schema; None without rules.
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
    stored_version = _definition(crd, next(one for one in versions if one.get("storage")), schemas)
    stored = _record(stored_version, stored_version)
    others = [one for one in versions if one.get("served") and one["name"] != stored_version.version["name"]]
    faces = tuple(_record(_definition(crd, one, schemas), stored_version) for one in others)
    return Records(stored, faces, bool(stored_version.version.get("served")))


def _definition(crd: Object, version: Object, schemas: Mapping[str, Structural]) -> _Definition:
    schema = schemas[f"{crd['spec']['group']}/{version['name']}"]
    if not structural.has_rules(schema):
        return _Definition(crd, version, schemas, None)
    from podscaler.api.crd import rules

    return _Definition(crd, version, schemas, rules.RuleSet(schema))


def schema_of(version: Object) -> Object:
    """The OpenAPI v3 schema of a version; without one, that of an object with any fields."""
    anything: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or anything
    return schema


def _record(served: _Definition, stored_version: _Definition) -> Resource:
    """The record of the version `served`."""
    names, name = served.names, served.version["name"]
    is_face = name != stored_version.version["name"]
    as_served = partial(_read, served)
    return Resource(
        group=served.group,
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        versions=(_version(served, stored_version),),
        storage_version=stored_version.version["name"],
        printer=columns.printer(served.version.get("additionalPrinterColumns") or (), as_served),
        namespaced=served.crd["spec"]["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        strategy=_strategy(served, stored_version),
        has_status=served.has_status,
        scale=scale.mapping(served.scale) if served.scale is not None else None,
        fields=selectable_fields(served.version.get("selectableFields") or ()),
        stored_as=storage_key(served.crd) if is_face else "",
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
        return {name: _field_text(json_path.values_at(obj, path)) for name, path in paths.items()}

    return read


def _field_text(values: list[Any]) -> str:
    if not values or values[0] is None or isinstance(values[0], dict | list):
        return ""
    first = values[0]
    return str(first).lower() if isinstance(first, bool) else str(first)


def _version(served: _Definition, stored_version: _Definition) -> Version:
    return Version(
        served.version["name"],
        "",
        default=lambda obj: defaulting.set_defaults(obj, served.schema),
        to_storage=partial(_to_storage, served, stored_version),
        from_storage=partial(_from_storage, served, stored_version),
        deprecation=deprecation(served.crd, served.version),
        decode=lambda value: decoding.decoded(value, served.group, served.schemas),
        openapi=partial(_components, served),
        fields_type=structural_types.of_kind(served.schema.source),
    )


def _components(served: _Definition) -> dict[str, Object]:
    gvk = {"group": served.group, "version": served.version["name"], "kind": served.kind}
    list_kind = served.names.get("listKind") or f"{served.kind}List"
    return openapi.components(served.schema.source, gvk, plural=served.names["plural"], list_kind=list_kind)


def deprecation(crd: Object, version: Object) -> str:
    """The warning to clients of a deprecated version; empty for other versions."""
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


def _check_type(served: _Definition, obj: Object) -> Object:
    """The object. Raises StatusError 422 unless it has the kind and apiVersion of the version."""
    found = []
    kind, api_version = obj.get("kind", ""), obj.get("apiVersion", "")
    if kind != served.kind:
        found.append(invalid("kind", kind, f"must be {served.kind}"))
    if api_version != served.api_version:
        found.append(invalid("apiVersion", api_version, f"must be {served.api_version}"))
    if found:
        name = (obj.get("metadata") or {}).get("name", "")
        raise invalid_object(group=api_version.rpartition("/")[0], kind=kind, name=name, errors=found)
    return obj


def _from_storage(served: _Definition, stored_version: _Definition, obj: Object) -> Object:
    _check_conversion(served, stored_version)
    return _read(served, obj)


def _to_storage(served: _Definition, stored_version: _Definition, obj: Object) -> Object:
    checked = _check_type(served, obj)
    _check_conversion(served, stored_version)
    return checked


def _check_conversion(served: _Definition, stored_version: _Definition) -> None:
    """Raise StatusError 500 where a webhook would have to convert objects."""
    strategy = (served.crd["spec"].get("conversion") or {}).get("strategy")
    if strategy == "Webhook" and served.api_version != stored_version.api_version:
        why = "this server does not call conversion webhooks"
        raise StatusError(
            f"conversion webhook for {stored_version.api_version}, Kind={stored_version.kind} failed: {why}", code=500
        )


def _read(served: _Definition, obj: Object) -> Object:
    """Convert a stored object to the version, in place: the present schemas apply to objects of older ones, too."""
    written = served.schemas.get(obj.get("apiVersion", ""), served.schema)
    pruning.prune(obj, written)
    defaulting.drop_nulls(obj, written)
    defaulting.set_defaults(obj, written)
    if written is not served.schema:  # removes defaults of the version that was stored
        pruning.prune(obj, served.schema)
    obj["apiVersion"] = served.api_version
    return obj


def _strategy(served: _Definition, stored_version: _Definition) -> Strategy:
    return Strategy(
        prepare_create=partial(_prepare_create, served),
        prepare_update=partial(_prepare_update, served),
        prepare_status_update=_prepare_status_update,
        validate=partial(_field_errors, served),
        validate_status=partial(_status_errors, served),
        has_generation=True,
        spec_of=partial(_content, served),
        stored_form=partial(_stored_form, stored_version),
        allows_bare_finalizers=True,
        allows_unconditional_update=False,
        warnings=partial(_warnings, served),
    )


def _prepare_create(served: _Definition, new: Object) -> None:
    """Raises StatusError 403 while the definition is being deleted."""
    if "deletionTimestamp" in served.crd["metadata"]:
        name, group, plural = new["metadata"].get("name", ""), served.group, served.names["plural"]
        why = "create not allowed while custom resource definition is terminating"
        text = f'{plural}.{group} "{name}" is forbidden: {why}'
        details = {"name": name, "group": group, "kind": plural}
        raise StatusError(text, code=403, reason="Forbidden", details=details)
    if served.has_status:
        new.pop("status", None)


def _prepare_update(served: _Definition, new: Object, old: Object) -> None:
    if served.has_status:
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


def _content(served: _Definition, obj: Object) -> bytes:
    """The part of an object whose changes increase metadata.generation: all but metadata and a status subresource."""
    content = _read(served, semantics.copied({**obj, "metadata": {}}))
    others = META_FIELDS | ({"status"} if served.has_status else set())
    return msgspec.json.encode({name: content[name] for name in content if name not in others}, order="sorted")


def _field_errors(served: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    found = _schema_errors(served, new, old)
    if served.scale is not None:
        found += scale.spec_errors(new, served.scale) + scale.status_errors(new, served.scale)
    found += validation.embedded_resource_errors(new, served.schema)
    return _with_rule_errors(served, new, old, found)


def _status_errors(served: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    found = _schema_errors(served, new, old)
    if served.scale is not None:
        found += scale.status_errors(new, served.scale)
    return _with_rule_errors(served, new, old, found)


def _schema_errors(served: _Definition, new: Object, old: Object | None) -> list[FieldError]:
    return validation.field_errors(_typed(served, new), None if old is None else _typed(served, old), served.schema)


def _with_rule_errors(
    served: _Definition, new: Object, old: Object | None, found: list[FieldError]
) -> list[FieldError]:
    """`found` with the errors of list types, and of CEL rules unless an error in `found` blocks them."""
    if old is None or not list_types.field_errors(old, served.schema):
        found += list_types.field_errors(new, served.schema)
    if served.rules is None:
        return found
    if any(error.reason in _BLOCKING_REASONS for error in found):
        return [*found, invalid("<nil>", None, _RULES_NOT_CHECKED)]
    before = ABSENT if old is None else _typed(served, old)
    return found + served.rules.evaluate(_typed(served, new), before).errors


_BLOCKING_REASONS = frozenset(
    f"FieldValue{name}" for name in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _typed(served: _Definition, obj: Object) -> Object:
    """The object with its version's apiVersion and kind, which a schema may restrict."""
    return {**obj, "apiVersion": served.api_version, "kind": served.kind}


def _stored_form(stored_version: _Definition, obj: Object) -> Object:
    """The object as it is stored, changed in place: pruned by the storage version's schema, as in kube-apiserver."""
    pruning.prune(obj, stored_version.schema)
    obj["metadata"] = canonical.canonical(obj["metadata"], decoding.OBJECT_META)
    return obj


def _warnings(served: _Definition, new: Object, old: Object | None) -> list[str]:
    """The warnings about rules that unchanged values violate, and about added finalizers without a domain."""
    broken: list[str] = []
    if served.rules is not None and old is not None:
        results = served.rules.evaluate(_typed(served, new), _typed(served, old))
        broken = [str(error) for error in results.warnings]
    return broken + _finalizer_warnings(new, old)


def _finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    before: list[str] = ((old or {}).get("metadata") or {}).get("finalizers") or []
    added = {name for name in new["metadata"].get("finalizers") or [] if name not in before}
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
        "accidental conflicts with other finalizer writers"
        for name in sorted(added)
        if "/" not in name and name not in metadata.STANDARD_FINALIZERS
    ]
