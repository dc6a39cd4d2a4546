"""Validates custom objects against their OpenAPI schemas, with the field errors of kube-apiserver.

    field_errors({"spec": {"size": "x"}}, None, schema)      spec.size: Invalid value: ... must be of type integer

Called by `records` for every write. `constraints` checks single values; this module recurses into objects and lists.
An update does not validate unchanged values again (ratcheting: an object that a stricter schema would reject can still
be changed); the alternatives of allOf, anyOf, oneOf and not see all values of a changed object. Elements of `map` lists
are paired with their old values by their keys; elements of other lists are always validated.

Source: kube-openapi's validator and its ratcheting (KEP-4008); the API documentation of x-kubernetes-embedded-resource;
tests/conformance/golden/scale.jsonl.
"""

from typing import Any

from podscaler.api.crd import constraints, list_types, schema_errors, structural
from podscaler.api.crd.schema_errors import SchemaFindings
from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import metadata as metadata_rules
from podscaler.api.resource.resources import Object


def field_errors(new: Object, old: Object | None, schema: Structural) -> list[FieldError]:
    """The field errors of an object; `old` is the stored one, None for a new object."""
    return _node(new, ABSENT if old is None else old, schema, "").errors


def value_errors(value: Any, schema: Structural, path: str) -> list[FieldError]:
    """The field errors of the part of an object at `path`, for example of a default."""
    return _node(value, ABSENT, schema, path).errors


def _node(value: Any, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings about a value and all values in it; `old` is the stored value, ABSENT without one."""
    if old is not ABSENT and list_types.is_same(value, old, schema):
        return SchemaFindings(checks=1)
    findings = SchemaFindings()
    findings.merge(constraints.of_type(value, schema, path))
    if value is None:
        _add(findings, constraints.of_enum(value, schema.limits, path))
        return findings
    findings.merge(_composition_findings(value, schema, path))
    findings.merge(_value_findings(value, old, schema, path))
    return findings


def _add(findings: SchemaFindings, errors: list[FieldError]) -> None:
    findings.errors += errors
    findings.checks += 1


def _value_findings(value: Any, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by the schema's own constraints, and about the elements or members of the value."""
    findings = SchemaFindings()
    if isinstance(value, str):
        _add(findings, constraints.of_text(value, schema.limits, path))
        _add(findings, constraints.of_format(value, schema.format, path))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _add(findings, constraints.of_number(value, schema, path))
    elif isinstance(value, list):
        findings.merge(_elements(value, old, schema, path))
    _add(findings, constraints.of_enum(value, schema.limits, path))
    if isinstance(value, dict):
        findings.merge(_members(value, old, schema, path))
    return findings


def _elements(value: list[Any], old: Any, schema: Structural, path: str) -> SchemaFindings:
    """What is wrong in a list: its elements, then its length."""
    findings = SchemaFindings()
    if schema.items is not None:
        old_by_key = _by_key(old, schema)
        for index, item in enumerate(value):
            before = old_by_key.get(list_types.identity(item, schema), ABSENT) if old_by_key else ABSENT
            findings.merge(_node(item, before, schema.items, f"{path}[{index}]"))
    _add(findings, constraints.of_length(value, schema.limits, path))
    return findings


def _by_key(old: Any, schema: Structural) -> dict[str, Any]:
    if schema.list_type != "map" or not isinstance(old, list):
        return {}
    return {list_types.identity(item, schema): item for item in old}


def _members(value: Object, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """What is wrong in an object: its number of members, or else the members and those that are missing."""
    count_errors = constraints.of_members(value, schema.limits, path)
    findings = SchemaFindings(count_errors, 1)
    if count_errors:
        return findings
    for name, item in value.items():
        member = schema.member(name)
        if member is not None:
            before = old.get(name, ABSENT) if isinstance(old, dict) else ABSENT
            findings.merge(_node(item, before, member, f"{path}.{name}" if path else name))
    findings.errors += [schema_errors.required(path, name) for name in schema.limits.required if name not in value]
    return findings


def _composition_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by allOf, anyOf, oneOf and not, which also apply to unchanged values of a changed object."""
    findings = SchemaFindings()
    for check in (_any_of, _one_of, _all_of, _none_of):
        findings.merge(check(value, schema, path))
    return findings


def _closest(results: list[SchemaFindings]) -> SchemaFindings:
    """The result with the most checks: that of the alternative that the value resembles most."""
    return max(results, key=lambda result: result.checks)


def _any_of(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """What is wrong by `anyOf`: nothing if one alternative is valid, else what the closest one says."""
    if not schema.any_of:
        return SchemaFindings()
    results = []
    for alternative in schema.any_of:
        results.append(_node(value, ABSENT, alternative, path))
        if results[-1].is_valid:
            return results[-1]
    findings = SchemaFindings([schema_errors.without_path(f'"{path}" must validate at least one schema (anyOf)')])
    findings.merge(_closest(results))
    return findings


def _one_of(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """What is wrong by `oneOf`: nothing if exactly one alternative is valid."""
    if not schema.one_of:
        return SchemaFindings()
    results = [_node(value, ABSENT, alternative, path) for alternative in schema.one_of]
    valid = [result for result in results if result.is_valid]
    if len(valid) == 1:
        return valid[0]
    more = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    text = f'"{path}" must validate one and only one schema (oneOf). {more}'
    findings = SchemaFindings([schema_errors.without_path(text)])
    if not valid:
        findings.merge(_closest(results))
    return findings


def _all_of(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """What is wrong by `allOf`: what all of its schemas say."""
    findings = SchemaFindings()
    results = [_node(value, ABSENT, conjunct, path) for conjunct in schema.all_of]
    for result in results:
        findings.merge(result)
    valid = sum(result.is_valid for result in results)
    if valid != len(results):
        more = "" if valid else ". None validated"
        findings.errors.append(schema_errors.without_path(f'"{path}" must validate all the schemas (allOf){more}'))
    return findings


def _none_of(value: Any, schema: Structural, path: str) -> SchemaFindings:
    if schema.none_of is None or not _node(value, ABSENT, schema.none_of, path).is_valid:
        return SchemaFindings()
    return SchemaFindings([schema_errors.without_path(f'"{path}" must not validate the schema (not)')])


def embedded_resource_errors(obj: Object, schema: Structural) -> list[FieldError]:
    """The field errors of apiVersion, kind, labels and annotations of embedded resources."""
    return [
        error
        for path, embedded in structural.embedded_resources(obj, schema)
        for error in _embedded_errors(embedded, path)
    ]


def _embedded_errors(value: Object, path: str) -> list[FieldError]:
    """Errors of an embedded object: its apiVersion and kind, its labels and annotations."""
    errors = [required(f"{path}.{name}") for name in ("apiVersion", "kind") if not value.get(name)]
    api_version = value.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        text = f"unexpected GroupVersion string: {api_version}"
        errors.append(invalid(f"{path}.apiVersion", api_version, text))
    kind = value.get("kind")
    if isinstance(kind, str) and kind:
        head = "may have mixed case, but should otherwise match: "
        errors += [invalid(f"{path}.kind", kind, f"{head}{text}") for text in names.dns_label_errors(kind.lower())]
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        errors += metadata_rules.label_errors(metadata.get("labels") or {}, f"{path}.metadata.labels")
        errors += metadata_rules.annotation_errors(metadata.get("annotations") or {}, f"{path}.metadata.annotations")
    return errors
