"""Validates custom objects against their OpenAPI schemas, with the field errors of kube-apiserver.

    field_errors({"spec": {"size": "x"}}, None, schema)      spec.size: Invalid value: ... must be of type integer

Called by `records` for every write. `constraints` checks single values (a new keyword: a function there, its call in
`_value_findings`); this module recurses into objects and lists.

An update does not validate unchanged values again (ratcheting: an object that a stricter schema would reject can still
be changed); the alternatives of allOf, anyOf, oneOf and not see all values of a changed object. Elements of `map` lists
are paired with their old values by their keys (the first of equal ones); elements of other lists are always validated.

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
    return _node_findings(new, ABSENT if old is None else old, schema, "").errors


def value_errors(value: Any, schema: Structural, path: str) -> list[FieldError]:
    """The field errors of the part of an object at `path`; called for defaults, by the validation of definitions."""
    return _node_findings(value, ABSENT, schema, path).errors


def _node_findings(value: Any, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings about a value and all values in it; `old` is the stored value, ABSENT without one."""
    if old is not ABSENT and list_types.is_same(value, old, schema):
        return SchemaFindings(checks=1)
    findings = SchemaFindings()
    findings.merge(constraints.type_findings(value, schema, path))
    if value is None:
        _add_errors(findings, constraints.enum_errors(value, schema.limits, path))
        return findings
    findings.merge(_composition_findings(value, schema, path))
    findings.merge(_value_findings(value, old, schema, path))
    return findings


def _add_errors(findings: SchemaFindings, errors: list[FieldError]) -> None:
    findings.errors += errors
    findings.checks += 1


def _value_findings(value: Any, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by the schema's own constraints, and about the elements or members of the value."""
    findings = SchemaFindings()
    if isinstance(value, str):
        _add_errors(findings, constraints.text_errors(value, schema.limits, path))
        _add_errors(findings, constraints.format_errors(value, schema.format, path))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _add_errors(findings, constraints.number_errors(value, schema, path))
    elif isinstance(value, list):
        findings.merge(_element_findings(value, old, schema, path))
    _add_errors(findings, constraints.enum_errors(value, schema.limits, path))
    if isinstance(value, dict):
        findings.merge(_member_findings(value, old, schema, path))
    return findings


def _element_findings(value: list[Any], old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings about a list: those of its elements, then those of the list itself."""
    findings = SchemaFindings()
    if schema.items is not None:
        old_by_key = list_types.index_elements(old, schema)
        for index, item in enumerate(value):
            old_item = old_by_key.get(list_types.identity(item, schema), ABSENT) if old_by_key else ABSENT
            findings.merge(_node_findings(item, old_item, schema.items, f"{path}[{index}]"))
    _add_errors(findings, constraints.list_errors(value, schema.limits, path))
    return findings


def _member_findings(value: Object, old: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings about an object: its number of members, or else its members and those that are missing."""
    count_errors = constraints.member_count_errors(value, schema.limits, path)
    findings = SchemaFindings(count_errors, 1)
    if count_errors:
        return findings
    for name, item in value.items():
        member_schema = schema.member(name)
        if member_schema is not None:
            old_member = old.get(name, ABSENT) if isinstance(old, dict) else ABSENT
            findings.merge(_node_findings(item, old_member, member_schema, f"{path}.{name}" if path else name))
    findings.errors += [schema_errors.required(path, name) for name in schema.limits.required if name not in value]
    return findings


def _composition_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by allOf, anyOf, oneOf and not, which also apply to unchanged values of a changed object."""
    findings = SchemaFindings()
    for find in (_any_of_findings, _one_of_findings, _all_of_findings, _not_findings):
        findings.merge(find(value, schema, path))
    return findings


def _closest_findings(results: list[SchemaFindings]) -> SchemaFindings:
    """The result with the most checks: that of the alternative that the value resembles most."""
    return max(results, key=lambda result: result.checks)


def _any_of_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by `anyOf`: none if one alternative is valid, else those of the closest one."""
    if not schema.any_of:
        return SchemaFindings()
    alternative_findings = []
    for alternative in schema.any_of:
        alternative_findings.append(_node_findings(value, ABSENT, alternative, path))
        if alternative_findings[-1].is_valid:
            return alternative_findings[-1]
    findings = SchemaFindings([schema_errors.without_path(f'"{path}" must validate at least one schema (anyOf)')])
    findings.merge(_closest_findings(alternative_findings))
    return findings


def _one_of_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by `oneOf`: none if exactly one alternative is valid; those of the closest one if none is."""
    if not schema.one_of:
        return SchemaFindings()
    alternative_findings = [_node_findings(value, ABSENT, alternative, path) for alternative in schema.one_of]
    valid_findings = [findings_of_one for findings_of_one in alternative_findings if findings_of_one.is_valid]
    if len(valid_findings) == 1:
        return valid_findings[0]
    found_text = f"Found {len(valid_findings)} valid alternatives" if valid_findings else "Found none valid"
    message = f'"{path}" must validate one and only one schema (oneOf). {found_text}'
    findings = SchemaFindings([schema_errors.without_path(message)])
    if not valid_findings:
        findings.merge(_closest_findings(alternative_findings))
    return findings


def _all_of_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by `allOf`: those of all of its schemas."""
    findings = SchemaFindings()
    subschema_findings = [_node_findings(value, ABSENT, subschema, path) for subschema in schema.all_of]
    for findings_of_one in subschema_findings:
        findings.merge(findings_of_one)
    valid_count = sum(findings_of_one.is_valid for findings_of_one in subschema_findings)
    if valid_count != len(subschema_findings):
        none_text = "" if valid_count else ". None validated"
        findings.errors.append(schema_errors.without_path(f'"{path}" must validate all the schemas (allOf){none_text}'))
    return findings


def _not_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The findings by `not`: an error if the value is valid by its schema."""
    if schema.none_of is None or not _node_findings(value, ABSENT, schema.none_of, path).is_valid:
        return SchemaFindings()
    return SchemaFindings([schema_errors.without_path(f'"{path}" must not validate the schema (not)')])


def embedded_resource_errors(obj: Object, schema: Structural) -> list[FieldError]:
    """The field errors of apiVersion, kind, labels and annotations of embedded resources."""
    return [
        error
        for path, embedded in structural.embedded_resources(obj, schema)
        for error in _embedded_errors(embedded, path)
    ]


def _embedded_errors(embedded: Object, path: str) -> list[FieldError]:
    """Errors of an embedded object: its apiVersion and kind, its labels and annotations."""
    errors = [required(f"{path}.{name}") for name in ("apiVersion", "kind") if not embedded.get(name)]
    api_version = embedded.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        problem = f"unexpected GroupVersion string: {api_version}"
        errors.append(invalid(f"{path}.apiVersion", api_version, problem))
    kind = embedded.get("kind")
    if isinstance(kind, str) and kind:
        message_start = "may have mixed case, but should otherwise match: "
        errors += [
            invalid(f"{path}.kind", kind, f"{message_start}{problem}")
            for problem in names.dns_label_errors(kind.lower())
        ]
    metadata = embedded.get("metadata")
    if isinstance(metadata, dict):
        errors += metadata_rules.label_errors(metadata.get("labels") or {}, f"{path}.metadata.labels")
        errors += metadata_rules.annotation_errors(metadata.get("annotations") or {}, f"{path}.metadata.annotations")
    return errors
