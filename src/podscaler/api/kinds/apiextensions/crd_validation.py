"""Validates CustomResourceDefinition: names, versions, columns, subresources, conversion; and its status.

`api.kinds.apiextensions.customresourcedefinition` registers `validate`, `validate_status` and `warnings` as hooks;
`crd_schema_validation` validates the schemas. A new field of a version: add its check to `_content_errors`,
_SHARED_FIELDS and `_internal_form`, or to `_version_errors` if kube-apiserver never stores it beside the versions. An
`Object` is the part of an API object that the name of the argument says, as a JSON object; `path` is its path in
errors.

kube-apiserver stores a schema, column or subresource that is equal in all versions once, beside the versions: its
errors have paths in `spec.validation`, `spec.subresources`, ... and are reported once.

Source: the API documentation of CustomResourceDefinition; kube-apiserver's validation messages.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from podscaler.api.kinds.apiextensions import crd_conditions, crd_schema_validation
from podscaler.api.machinery import names as name_rules
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required, too_many
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object
from podscaler.api.text import quoting

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVAL_ANNOTATION = "api-approved.kubernetes.io"
_WARNING_MAX_CHARACTERS = 256
_SHARED_FIELDS = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Field of a version -> its name in `spec`, where kube-apiserver stores it if it is equal in all versions."""
_CONVERSION_STRATEGIES = ("None", "Webhook")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_PORT_MAX = 65_535
_DEFAULT_SERVICE_PORT = 443
"""The default port of the Service of a webhook."""


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a definition; `old` is the stored one, None for a new one."""
    spec = new["spec"]
    errors = _metadata_name_errors(new) if old is None else []
    errors += _spec_errors(spec)
    stored_versions = (new.get("status") or {}).get("storedVersions") or []
    errors += _stored_version_errors(stored_versions, spec.get("versions") or [])
    if old is not None:
        errors += _change_errors(spec, old)
    errors += _approval_errors(new, old)
    if spec.get("preserveUnknownFields") and not (old or {}).get("spec", {}).get("preserveUnknownFields"):
        message = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, message))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status: of the accepted names."""
    status = new.get("status") or {}
    return _names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")


def warnings(new: Object, _old: Object | None) -> list[str]:
    """The warnings about formats that are not validated, and about sets whose elements are objects or lists."""
    messages: list[str] = []
    for version in new["spec"].get("versions") or []:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        formats = crd_schema_validation.unknown_formats(schema)
        messages += [f"unrecognized format {quoting.quoted(name)}" for name in formats]
        messages += crd_schema_validation.set_warnings(schema)
    return list(dict.fromkeys(messages))


def _metadata_name_errors(crd: Object) -> list[FieldError]:
    """The errors of `name` and `generateName`, which have the same rule."""
    metadata, spec = crd["metadata"], crd["spec"]
    expected_name = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    return [
        invalid(f"metadata.{field}", metadata[field], 'must be spec.names.plural+"."+spec.group')
        for field in ("generateName", "name")
        if metadata.get(field) and metadata[field] != expected_name
    ]


def _spec_errors(spec: Object) -> list[FieldError]:
    """Errors of the spec, in upstream's order."""
    errors = _group_errors(spec.get("group", ""))
    errors += checks.required_one_of(spec.get("scope", ""), "spec.scope", ("Cluster", "Namespaced"))
    errors += _versions_errors(spec.get("versions") or [])
    names = spec.get("names") or {}
    errors += [
        required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]
    errors += _names_errors(names, "spec.names")
    return errors + _conversion_errors(spec.get("conversion") or {}, "spec.conversion")


def _group_errors(group: str) -> list[FieldError]:
    """Errors of the group, a domain with at least one dot."""
    if not group:
        return [required("spec.group")]
    messages = name_rules.dns_subdomain_errors(group)
    if messages:
        return [invalid("spec.group", group, ",".join(messages))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _versions_errors(versions: list[Object]) -> list[FieldError]:
    """Errors of the versions: those of fields that are equal in all of them once, at `spec`."""
    errors = [
        required(f"spec.versions[{index}].schema.openAPIV3Schema")
        for index, version in enumerate(versions)
        if not (version.get("schema") or {}).get("openAPIV3Schema")
    ]
    shared_fields = [name for name in _SHARED_FIELDS if _is_shared(versions, name)]
    unshared_fields = [name for name in _SHARED_FIELDS if name not in shared_fields]
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        errors += _version_errors(version, path)
        unshared_paths = {name: f"{path}.{name}" for name in unshared_fields}
        errors += _content_errors(version, unshared_paths, has_status=_has_status(version))
    if versions:
        shared_paths = {name: f"spec.{_SHARED_FIELDS[name]}" for name in shared_fields}
        # one status subresource is enough: a shared schema is the schema of all versions
        errors += _content_errors(versions[0], shared_paths, has_status=any(map(_has_status, versions)))
        errors += _first_version_errors(versions[0].get("name", ""))
    return errors + _version_set_errors(versions)


def _has_status(version: Object) -> bool:
    return "status" in (version.get("subresources") or {})


def _is_shared(versions: list[Object], name: str) -> bool:
    """Whether the field `name` is equal in all versions."""
    return all(version.get(name) == versions[0].get(name) for version in versions)


def _version_set_errors(versions: list[Object]) -> list[FieldError]:
    """Errors of the versions together: unique names, exactly one of them stored."""
    errors = []
    version_names = [version.get("name", "") for version in versions]
    if len(set(version_names)) < len(version_names):
        errors.append(invalid("spec.versions", _internal_form(versions), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        message = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", _internal_form(versions), message))
    return errors


def _internal_form(versions: list[Object]) -> list[Object]:
    """The versions as kube-apiserver prints them: with Go names, without the fields that are equal in all of them."""
    return [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{
                f"{field[0].upper()}{field[1:]}": None if _is_shared(versions, field) else version.get(field)
                for field in _SHARED_FIELDS
            },
        }
        for version in versions
    ]


def _first_version_errors(name: str) -> list[FieldError]:
    """Field errors of `spec.version`, the deprecated copy that kube-apiserver keeps of the first version's name."""
    messages = name_rules.dns_1035_label_errors(name) if name else []
    return [invalid("spec.version", name, ",".join(messages))] if messages else []


def _version_errors(version: Object, path: str) -> list[FieldError]:
    """Errors of the name and the deprecation of one version."""
    name = version.get("name", "")
    messages = name_rules.dns_1035_label_errors(name)
    errors = [invalid(f"{path}.name", name, ",".join(messages))] if messages else []
    warning = version.get("deprecationWarning")
    for message in _deprecation_messages(warning, is_deprecated=bool(version.get("deprecated"))):
        errors.append(invalid(f"{path}.deprecationWarning", warning, message))
    return errors


def _deprecation_messages(warning: str | None, *, is_deprecated: bool) -> Iterator[str]:
    """Yields a message for each rule that a deprecation warning violates; None is a version without a warning."""
    if warning is None:
        return
    if not is_deprecated:
        yield "can only be set for deprecated versions"
    if len(warning) > _WARNING_MAX_CHARACTERS:
        yield f"must be <= {_WARNING_MAX_CHARACTERS} characters long"
    if not warning:
        yield "must not be an empty string"
    for index, character in enumerate(warning):
        if not character.isprintable():
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            return


def _content_errors(version: Object, paths: dict[str, str], *, has_status: bool) -> list[FieldError]:
    """The field errors of the parts of a version that are named in `paths`.

    Args:
        version: an item of `spec.versions`.
        paths: field of the version (a key of _SHARED_FIELDS) -> the path of its errors.
        has_status: whether the schema is that of a version with a status subresource.
    """
    errors: list[FieldError] = []
    for field, path in paths.items():
        content = version.get(field)
        if not content:
            continue
        match field:
            case "schema":
                schema, schema_path = content.get("openAPIV3Schema"), f"{path}.openAPIV3Schema"
                errors += crd_schema_validation.validate(schema, schema_path, has_status=has_status)
            case "subresources":
                errors += _subresources_errors(content, path)
            case "additionalPrinterColumns":
                errors += checks.each(content, path, _column_errors)
            case "selectableFields":
                errors += _selectable_fields_errors(content, path, version)
    return errors


def _subresources_errors(subresources: Object, path: str) -> list[FieldError]:
    """Errors of the JSON paths of the scale subresource; the status subresource has no fields."""
    scale = subresources.get("scale")
    if scale is None:
        return []
    errors = []
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        field_path = f"{path}.scale.{name}"
        json_path = scale.get(name, "")
        message = f"should be a json path under {root.rstrip('.')}"
        errors += _json_path_errors(json_path, field_path, (root,), message) if json_path else [required(field_path)]
    selector = scale.get("labelSelectorPath")
    if selector:
        message = "should be a json path under either .spec or .status"
        errors += _json_path_errors(selector, f"{path}.scale.labelSelectorPath", (".spec.", ".status."), message)
    return errors


def _json_path_errors(json_path: str, path: str, roots: tuple[str, ...], root_message: str) -> list[FieldError]:
    """Field errors of a JSON path that does not start with one of `roots`; `root_message` is the message about that."""
    if not json_path.startswith("."):
        return [invalid(path, json_path, "must be a simple json path starting with .")]
    return [] if json_path.startswith(roots) else [invalid(path, json_path, root_message)]


def _column_errors(column: Object, path: str) -> list[FieldError]:
    """Field errors of one of the `additionalPrinterColumns`: its name, type, format and JSON path."""
    errors = checks.present(column.get("name"), f"{path}.name")
    type_name, format_name, json_path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    type_message = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_name:
        errors.append(required(f"{path}.type", type_message))
    elif type_name not in _COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", type_name, type_message))
    if format_name and format_name not in _COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", format_name, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not json_path:
        errors.append(required(f"{path}.JSONPath"))
    elif not json_path.startswith("."):
        errors.append(invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with ."))
    return errors


def _selectable_fields_errors(fields: list[Object], path: str, version: Object) -> list[FieldError]:
    """Field errors of the `selectableFields` of a version: their JSON paths, duplicates, their number."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    errors: list[FieldError] = []
    earlier_json_paths: set[str] = set()
    for index, selectable_field in enumerate(fields):
        json_path = selectable_field.get("jsonPath", "")
        errors += crd_schema_validation.selectable_path_errors(json_path, schema, f"{path}[{index}].jsonPath")
        errors += checks.not_repeated(json_path, f"{path}[{index}].jsonPath", earlier_json_paths)
    if len(fields) > crd_schema_validation.SELECTABLE_FIELDS_MAX:
        errors.append(too_many(path, len(fields), crd_schema_validation.SELECTABLE_FIELDS_MAX))
    return errors


def _names_errors(names: Object, path: str) -> list[FieldError]:
    """Field errors of `spec.names` or `status.acceptedNames`: each name is a DNS label, kinds in lower case."""
    errors = []
    for field in ("plural", "singular"):
        errors += _label_errors(names.get(field, ""), f"{path}.{field}")
    for field in ("kind", "listKind"):
        messages = name_rules.dns_1035_label_errors(names.get(field, "").lower()) if names.get(field) else []
        kind_message = f"may have mixed case, but should otherwise match: {','.join(messages)}"
        errors += [invalid(f"{path}.{field}", names[field], kind_message)] if messages else []
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or []):
            errors += _label_errors(name, f"{path}.{field}[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return errors


def _label_errors(name: str, path: str, *, is_optional: bool = True) -> list[FieldError]:
    """The field error of a name that is no DNS label; `is_optional`: whether it may be empty."""
    messages = name_rules.dns_1035_label_errors(name) if name or not is_optional else []
    return [invalid(path, name, ",".join(messages))] if messages else []


def _stored_version_errors(stored_versions: list[str], versions: list[Object]) -> list[FieldError]:
    """Field errors of `status.storedVersions`: it contains the storage version, and no version that was removed.

    Args:
        stored_versions: names of the versions in which objects may be stored.
        versions: `spec.versions`.
    """
    path = "status.storedVersions"
    if not stored_versions:
        return [invalid(path, None, "must have at least one stored version")]
    version_names = {version.get("name", "") for version in versions}
    errors = [
        invalid(path, stored_versions, f"must have the storage version {version.get('name', '')}")
        for version in versions
        if version.get("storage") and version.get("name", "") not in stored_versions
    ]
    removed_versions = [(index, name) for index, name in enumerate(stored_versions) if name not in version_names]
    return errors + [
        invalid(f"{path}[{index}]", name, _removed_version_message(name)) for index, name in removed_versions
    ]


def _removed_version_message(name: str) -> str:
    """The message about a version that was removed from the spec while objects may still be stored in it."""
    return (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
        f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )


def _change_errors(spec: Object, old: Object) -> list[FieldError]:
    """The errors of changed fields; scope and kind can change until the stored definition, `old`, is established."""
    old_spec = old["spec"]
    names, old_names = spec["names"], old_spec["names"]
    errors = checks.unchanged(spec.get("group"), old_spec.get("group"), "spec.group")
    errors += checks.unchanged(names.get("plural"), old_names.get("plural"), "spec.names.plural")
    if crd_conditions.is_true(old, crd_conditions.ESTABLISHED):
        errors += checks.unchanged(spec.get("scope"), old_spec.get("scope"), "spec.scope")
        errors += checks.unchanged(names.get("kind"), old_names.get("kind"), "spec.names.kind")
    return errors


def _approval_errors(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a protected group (`*.k8s.io`, `*.kubernetes.io`) without the annotation about its approval.

    An update may keep an annotation that is missing or invalid already.
    """
    group = new["spec"].get("group", "")
    if not (f".{group}".endswith((".k8s.io", ".kubernetes.io"))):
        return []
    approval = _approval_value(new)
    state = _approval_state(approval)
    if state == "valid" or (old is not None and _approval_state(_approval_value(old)) == state):
        return []
    path = f"metadata.annotations[{_APPROVAL_ANNOTATION}]"
    see_also = "see https://github.com/kubernetes/enhancements/pull/1111"
    if state == "missing":
        return [required(path, f'protected groups must have approval annotation "{_APPROVAL_ANNOTATION}", {see_also}')]
    value_rule = 'with either a URL or a reason starting with "unapproved"'
    message = f'protected groups must have approval annotation "{_APPROVAL_ANNOTATION}" {value_rule}, {see_also}'
    return [invalid(path, approval, message)]


def _approval_value(crd: Object) -> str:
    """The value of the annotation about the approval; empty without it."""
    approval: str = (crd["metadata"].get("annotations") or {}).get(_APPROVAL_ANNOTATION, "")
    return approval


def _approval_state(approval: str) -> str:
    """`missing` for an empty annotation, `valid` for a URL or a reason that starts with `unapproved`, or `invalid`."""
    if not approval:
        return "missing"
    if approval.startswith("unapproved"):
        return "valid"
    try:
        url = urlsplit(approval)
    except ValueError:
        return "invalid"
    return "valid" if url.scheme and url.netloc else "invalid"


def _conversion_errors(conversion: Object, path: str) -> list[FieldError]:
    """Field errors of `spec.conversion`; the webhook is required for the strategy Webhook, and forbidden for None."""
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook")
    strategy_path = f"{path}.strategy"
    errors = checks.one_of(strategy, strategy_path, _CONVERSION_STRATEGIES) if strategy else [required(strategy_path)]
    config = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if strategy == "Webhook":
        return (
            errors
            + _client_config_errors(config, f"{path}.webhookClientConfig")
            + _review_version_errors(versions, path)
        )
    message = "should not be set when strategy is not set to Webhook"
    errors += [forbidden(f"{path}.webhookClientConfig", message)] if config is not None else []
    return errors + ([forbidden(f"{path}.conversionReviewVersions", message)] if versions else [])


def _client_config_errors(config: Object | None, path: str) -> list[FieldError]:
    """Field errors of the `clientConfig` of the webhook: exactly one of a URL and a Service; None if it is missing."""
    if config is None:
        return [required(path, "required when strategy is set to Webhook")]
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return _url_errors(url, f"{path}.url") if url is not None else _service_errors(service or {}, f"{path}.service")


def _url_errors(url: str, path: str) -> list[FieldError]:
    """Field errors of the URL of the webhook: https and a host, without user, query and fragment."""
    url_form = "; desired format: https://host[/path]"
    try:
        url_parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{url_form}")]  # no Invalid, as upstream
    errors = checks.holds(
        url_parts.scheme == "https", path, url_parts.scheme, f"'https' is the only allowed URL scheme{url_form}"
    )
    errors += checks.holds(url_parts.netloc, path, url_parts.netloc, f"host must be specified{url_form}")
    if url_parts.username is not None:
        errors.append(invalid(path, url_parts.username, "user information is not permitted in the URL"))
    errors += checks.holds(not url_parts.fragment, path, url_parts.fragment, "fragments are not permitted in the URL")
    return errors + checks.holds(
        not url_parts.query, path, url_parts.query, "query parameters are not permitted in the URL"
    )


def _service_errors(service: Object, path: str) -> list[FieldError]:
    """Field errors of the reference to the Service of the webhook."""
    errors = checks.present(service.get("name"), f"{path}.name", "service name is required")
    errors += checks.present(service.get("namespace"), f"{path}.namespace", "service namespace is required")
    port = service.get("port", _DEFAULT_SERVICE_PORT)
    if not 1 <= port <= _PORT_MAX:
        message = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
        errors.append(invalid(f"{path}.port", port, message))
    return errors


def _review_version_errors(versions: list[str], path: str) -> list[FieldError]:
    """Field errors of `conversionReviewVersions`, one of which must be supported here."""
    versions_path = f"{path}.conversionReviewVersions"
    if not versions:
        return [required(versions_path)]
    errors = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{versions_path}[{index}]", version, "duplicate version"))
            continue
        messages = name_rules.dns_1035_label_errors(version)
        errors += [invalid(f"{versions_path}[{index}]", version, ",".join(messages))] if messages else []
    if not set(versions) & set(_REVIEW_VERSIONS):
        errors.append(invalid(versions_path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors
