"""Makes the records (`api.resource.resources.Resource`) of a CustomResourceDefinition, to serve its objects.

    of(definition).served      one Resource for each served version of the definition

Called by `podscaler.controlplane.controllers.cluster.custom_resources` whenever a definition changes. The storage
version has the record under which objects are stored; every other served version has a record (a face) with its own
schema, columns and subresources, which reads and writes the same objects. A new field of `spec.versions` is read in
`_make_resource`, `_make_version` or `_make_strategy`. `stored_version` is the storage version, `crd_version` the
version of a record.

Invariants: an object that is read or written in a version is pruned by the schema of that version, as in
kube-apiserver. With the conversion strategy `None` conversion changes only the apiVersion, and the hooks of all
versions get objects in the storage version. With `Webhook` they get them in their own version: `webhook_conversion`
converts before and after.

Source: the API documentation of CustomResourceDefinition v1.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from podscaler.api.crd import (
    decoding,
    defaulting,
    json_path,
    list_types,
    openapi,
    printer_columns,
    pruning,
    scale,
    structural,
    validation,
    webhook_conversion,
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
class _DefinitionVersion:
    """One version of a definition, with the schemas of all versions.

    Attributes:
        crd: the CustomResourceDefinition as its JSON object.
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
        subresources: Object = self.version.get("subresources") or {}
        return subresources

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

    @property
    def webhook(self) -> Object | None:
        """`spec.conversion.webhook`; None with the strategy `None`."""
        conversion = self.crd["spec"].get("conversion") or {}
        return conversion["webhook"] if conversion.get("strategy") == "Webhook" else None


def names_of(crd: Object) -> Object:
    """The names under which objects are served: status.acceptedNames, or those of the spec before they are accepted."""
    accepted_names = (crd.get("status") or {}).get("acceptedNames") or {}
    names: Object = (
        accepted_names if accepted_names.get("plural") and accepted_names.get("kind") else crd["spec"]["names"]
    )
    return names


def storage_key(crd: Object) -> str:
    """The `Resource.key` under which the objects of a definition are stored."""
    return f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"


def of(crd: Object) -> Records:
    """The records of a definition whose names were accepted."""
    versions, group = crd["spec"]["versions"], crd["spec"]["group"]
    schemas = {f"{group}/{version['name']}": structural.parse(_schema_of(version)) for version in versions}
    stored_version = _definition_version(crd, next(version for version in versions if version.get("storage")), schemas)
    storage_record = _make_resource(stored_version, stored_version)
    other_served_versions = [
        version for version in versions if version.get("served") and version["name"] != stored_version.version["name"]
    ]
    faces = tuple(
        _make_resource(_definition_version(crd, version, schemas), stored_version) for version in other_served_versions
    )
    return Records(storage_record, faces, bool(stored_version.version.get("served")))


def _definition_version(crd: Object, version: Object, schemas: Mapping[str, Structural]) -> _DefinitionVersion:
    """The version with its rules, which need CEL; without rules CEL is not imported."""
    schema = schemas[f"{crd['spec']['group']}/{version['name']}"]
    if not structural.has_rules(schema):
        return _DefinitionVersion(crd, version, schemas, None)
    from podscaler.api.crd import rules

    return _DefinitionVersion(crd, version, schemas, rules.RuleSet(schema))


def _schema_of(version: Object) -> Object:
    """The OpenAPI v3 schema of a version; without one, that of an object with any fields."""
    anything: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or anything
    return schema


def _make_resource(crd_version: _DefinitionVersion, stored_version: _DefinitionVersion) -> Resource:
    """The record of one version, whose objects are stored in the form of `stored_version`."""
    names, version_name = crd_version.names, crd_version.version["name"]
    is_face = version_name != stored_version.version["name"]
    convert_from_storage = partial(_from_storage, crd_version)
    return Resource(
        group=crd_version.group,
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        list_kind=names.get("listKind", ""),
        versions=(_make_version(crd_version),),
        storage_version=stored_version.version["name"],
        printer=printer_columns.printer(
            crd_version.version.get("additionalPrinterColumns") or (), convert_from_storage
        ),
        namespaced=crd_version.crd["spec"]["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        strategy=_make_strategy(crd_version, stored_version),
        has_status=crd_version.has_status,
        scale=scale.mapping(crd_version.scale) if crd_version.scale is not None else None,
        fields=selectable_fields(crd_version.version.get("selectableFields") or ()),
        stored_as=storage_key(crd_version.crd) if is_face else "",
        face=version_name if is_face else "",
        is_custom=True,
    )


def selectable_fields(definitions: Sequence[Object]) -> Callable[[Object], Mapping[str, str]]:
    """Reads the selectable fields of an object: `{"spec.color": "blue"}`; an absent one is the empty text.

    Args:
        definitions: a version's `selectableFields` (KEP-4358).
    """
    paths = {
        field_definition["jsonPath"].removeprefix("."): field_definition["jsonPath"] for field_definition in definitions
    }

    def read(obj: Object) -> Mapping[str, str]:
        return {name: _selectable_text(json_path.values_at(obj, path)) for name, path in paths.items()}

    return read


def _selectable_text(values: list[Any]) -> str:
    """The text of the first value of a field; empty if there is none, or it is null, an object or a list."""
    first_value = values[0] if values else None
    if first_value is None or isinstance(first_value, dict | list):
        return ""
    return str(first_value).lower() if isinstance(first_value, bool) else str(first_value)


def _make_version(crd_version: _DefinitionVersion) -> Version:
    """One version of a custom kind."""
    return Version(
        version=crd_version.version["name"],
        message="",  # a custom kind has no message in the schema
        default=lambda obj: defaulting.set_defaults(obj, crd_version.schema),
        to_storage=partial(_check_type, crd_version),
        from_storage=partial(_from_storage, crd_version),
        deprecation=deprecation(crd_version.crd, crd_version.version),
        decode=lambda value: decoding.decoded(value, crd_version.group, crd_version.schemas),
        openapi=partial(_openapi_components, crd_version),
        fields_type=structural_types.of_kind(crd_version.schema.source),
        find_missing=partial(_find_missing, crd_version) if crd_version.webhook else None,
    )


def _openapi_components(crd_version: _DefinitionVersion) -> dict[str, Object]:
    """The OpenAPI schemas of the kind and of its list, by name."""
    gvk = {"group": crd_version.group, "version": crd_version.version["name"], "kind": crd_version.kind}
    list_kind = crd_version.names.get("listKind") or f"{crd_version.kind}List"
    return openapi.components(crd_version.schema.source, gvk, plural=crd_version.names["plural"], list_kind=list_kind)


def deprecation(crd: Object, version: Object) -> str:
    """The warning to clients of a deprecated version; empty for other versions."""
    if not version.get("deprecated"):
        return ""
    stated_warning: str | None = version.get("deprecationWarning")
    if stated_warning is not None:
        return stated_warning
    group, kind, name = crd["spec"]["group"], crd["spec"]["names"]["kind"], version["name"]
    deprecation_text = f"{group}/{name} {kind} is deprecated"
    usable_names = [
        other_version["name"]
        for other_version in crd["spec"]["versions"]
        if other_version.get("served") and not other_version.get("deprecated")
    ]
    recommended_name = min(usable_names, key=sort_key, default=name)
    if sort_key(recommended_name) >= sort_key(name):
        return deprecation_text
    return f"{deprecation_text}; use {group}/{recommended_name} {kind}"


def _check_type(crd_version: _DefinitionVersion, custom_object: Object) -> Object:
    """The object. Raises StatusError 422 unless it has the kind and apiVersion of the version."""
    errors = []
    kind, api_version = custom_object.get("kind", ""), custom_object.get("apiVersion", "")
    if kind != crd_version.kind:
        errors.append(invalid("kind", kind, f"must be {crd_version.kind}"))
    if api_version != crd_version.api_version:
        errors.append(invalid("apiVersion", api_version, f"must be {crd_version.api_version}"))
    if errors:
        name = (custom_object.get("metadata") or {}).get("name", "")
        raise invalid_object(group=api_version.rpartition("/")[0], kind=kind, name=name, errors=errors)
    return custom_object


def _from_storage(crd_version: _DefinitionVersion, obj: Object) -> Object:
    """Convert an object of any version, in place. Raises ConversionNeeded."""
    if crd_version.webhook is None or obj.get("apiVersion", crd_version.api_version) == crd_version.api_version:
        return _convert_by_version_name(crd_version, obj)
    _prune_and_default(crd_version, obj)
    _convert_by_webhook(crd_version, obj)
    pruning.prune(obj, crd_version.schema)
    return obj


def _convert_by_webhook(crd_version: _DefinitionVersion, obj: Object) -> None:
    """Convert an object of any version, in place, by a webhook. Raises ConversionNeeded."""
    if not obj.keys() - {"apiVersion", "kind"}:  # kube-apiserver does not send empty objects
        obj["apiVersion"] = crd_version.api_version
    if obj.setdefault("apiVersion", crd_version.api_version) != crd_version.api_version:
        obj.setdefault("metadata", {})
        assert crd_version.webhook is not None, "without a webhook versions differ in their apiVersion only"
        converted = webhook_conversion.convert(crd_version.webhook, obj, crd_version.api_version)
        obj.clear()
        obj.update(converted)
    obj.setdefault("kind", crd_version.kind)


def _find_missing(crd_version: _DefinitionVersion, objects: Iterable[Object]) -> Exception | None:
    """The ConversionNeeded to raise before `_from_storage` can convert all objects, which are changed in place."""
    assert crd_version.webhook is not None, "only webhooks have to be called"
    completed = [_prune_and_default(crd_version, obj) for obj in objects]
    return webhook_conversion.find_missing(crd_version.webhook, completed, crd_version.api_version)


def _prune_and_default(crd_version: _DefinitionVersion, obj: Object) -> Object:
    """Prune and default an object, in place, by the present schema of its version."""
    schema_of_version = crd_version.schemas.get(obj.get("apiVersion", ""), crd_version.schema)
    pruning.prune(obj, schema_of_version)
    defaulting.drop_nulls(obj, schema_of_version)
    defaulting.set_defaults(obj, schema_of_version)
    return obj


def _convert_by_version_name(crd_version: _DefinitionVersion, obj: Object) -> Object:
    """Convert a stored object to the version, in place: the present schemas apply to objects of older ones, too."""
    version = _prune_and_default(crd_version, obj).get("apiVersion", "")
    if version in crd_version.schemas and version != crd_version.api_version:  # removes defaults of the stored version
        pruning.prune(obj, crd_version.schema)
    obj["apiVersion"] = crd_version.api_version
    return obj


def _make_strategy(crd_version: _DefinitionVersion, stored_version: _DefinitionVersion) -> Strategy:
    """The hooks of the writes of a custom kind. A new hook: a field of `Strategy`, and its function here."""
    return Strategy(
        prepare_create=partial(_prepare_create, crd_version),
        prepare_update=partial(_prepare_update, crd_version),
        prepare_status_update=_prepare_status_update,
        validate=partial(_field_errors, crd_version),
        validate_status=partial(_status_errors, crd_version),
        has_generation=True,
        spec_of=partial(_generation_content, crd_version),
        stored_form=partial(_stored_form, stored_version),
        convert=partial(_convert_by_webhook, crd_version) if crd_version.webhook else None,
        allows_bare_finalizers=True,
        allows_unconditional_update=False,
        warnings=partial(_warnings, crd_version),
    )


def _prepare_create(crd_version: _DefinitionVersion, new: Object) -> None:
    """Remove a status that has its own subresource. Raises StatusError 403 while the definition is being deleted."""
    if "deletionTimestamp" in crd_version.crd["metadata"]:
        name, group, plural = new["metadata"].get("name", ""), crd_version.group, crd_version.names["plural"]
        reason = "create not allowed while custom resource definition is terminating"
        message = f'{plural}.{group} "{name}" is forbidden: {reason}'
        details = {"name": name, "group": group, "kind": plural}
        raise StatusError(message, code=403, reason="Forbidden", details=details)
    if crd_version.has_status:
        new.pop("status", None)


def _prepare_update(crd_version: _DefinitionVersion, new: Object, old: Object) -> None:
    """Keep the stored status, if the version has the status subresource."""
    if crd_version.has_status:
        status_subresource.keep_status(new, old)


def _prepare_status_update(new: Object, old: Object) -> None:
    """Everything but the status keeps its stored value, metadata included."""
    new_status = {"status": new["status"]} if "status" in new else {}
    resource_version = new["metadata"].get("resourceVersion", "")
    new.clear()
    new.update(semantics.copied(old))
    new.pop("status", None)
    new.update(new_status)
    if resource_version:
        new["metadata"]["resourceVersion"] = resource_version


def _generation_content(crd_version: _DefinitionVersion, obj: Object) -> bytes:
    """The part of an object whose changes increase metadata.generation: all but metadata and a status subresource."""
    content = _convert_by_version_name(crd_version, semantics.copied({**obj, "metadata": {}}))
    other_fields = META_FIELDS | ({"status"} if crd_version.has_status else set())
    return msgspec.json.encode({name: content[name] for name in content if name not in other_fields}, order="sorted")


def _field_errors(crd_version: _DefinitionVersion, new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a whole object; `old` is the stored one, None for a new object."""
    errors = _schema_errors(crd_version, new, old)
    if crd_version.scale is not None:
        errors += scale.spec_errors(new, crd_version.scale) + scale.status_errors(new, crd_version.scale)
    errors += validation.embedded_resource_errors(new, crd_version.schema)
    return _with_rule_errors(crd_version, new, old, errors)


def _status_errors(crd_version: _DefinitionVersion, new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an object whose status is written."""
    errors = _schema_errors(crd_version, new, old)
    if crd_version.scale is not None:
        errors += scale.status_errors(new, crd_version.scale)
    return _with_rule_errors(crd_version, new, old, errors)


def _schema_errors(crd_version: _DefinitionVersion, new: Object, old: Object | None) -> list[FieldError]:
    return validation.field_errors(
        _with_type(crd_version, new), None if old is None else _with_type(crd_version, old), crd_version.schema
    )


def _with_rule_errors(
    crd_version: _DefinitionVersion, new: Object, old: Object | None, errors: list[FieldError]
) -> list[FieldError]:
    """`errors`, which may be changed, with the errors of list types, and of CEL rules unless an error blocks them.

    Repeated elements are no errors where the stored object has some already (ratcheting).
    """
    if old is None or not list_types.field_errors(old, crd_version.schema):
        errors += list_types.field_errors(new, crd_version.schema)
    if crd_version.rules is None:
        return errors
    if any(error.reason in _BLOCKING_REASONS for error in errors):
        return [*errors, invalid("<nil>", None, _RULES_NOT_CHECKED)]
    old_object = ABSENT if old is None else _with_type(crd_version, old)
    return errors + crd_version.rules.evaluate(_with_type(crd_version, new), old_object).errors


_BLOCKING_REASONS = frozenset(
    f"FieldValue{name}" for name in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
"""The reasons of errors after which kube-apiserver does not evaluate CEL rules."""
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _with_type(crd_version: _DefinitionVersion, obj: Object) -> Object:
    """The object with its version's apiVersion and kind, which a schema may restrict."""
    return {**obj, "apiVersion": crd_version.api_version, "kind": crd_version.kind}


def _stored_form(stored_version: _DefinitionVersion, obj: Object) -> Object:
    """The object as it is stored, changed in place: pruned by the storage version's schema, as in kube-apiserver.

    Raises ConversionNeeded.
    """
    if stored_version.webhook:
        _convert_by_webhook(stored_version, obj)
    pruning.prune(obj, stored_version.schema)
    obj["metadata"] = canonical.canonical(obj["metadata"], decoding.OBJECT_META)
    return obj


def _warnings(crd_version: _DefinitionVersion, new: Object, old: Object | None) -> list[str]:
    """The warnings about rules that unchanged values violate, and about added finalizers without a domain."""
    rule_warnings: list[str] = []
    # the stored form may be in another version, of which this version's rules cannot be evaluated
    is_of_other_version = crd_version.webhook is not None and new["apiVersion"] != crd_version.api_version
    if crd_version.rules is not None and old is not None and not is_of_other_version:
        results = crd_version.rules.evaluate(_with_type(crd_version, new), _with_type(crd_version, old))
        rule_warnings = [str(error) for error in results.warnings]
    return rule_warnings + _finalizer_warnings(new, old)


def _finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    """Warnings about new finalizers without a domain."""
    old_metadata = (old or {}).get("metadata") or {}
    old_finalizers: list[str] = old_metadata.get("finalizers") or []
    added_names = {name for name in new["metadata"].get("finalizers") or [] if name not in old_finalizers}
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
        "accidental conflicts with other finalizer writers"
        for name in sorted(added_names)
        if "/" not in name and name not in metadata.STANDARD_FINALIZERS
    ]
