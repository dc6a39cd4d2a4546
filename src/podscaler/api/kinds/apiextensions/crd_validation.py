"""Validates CustomResourceDefinition: names, versions, columns, subresources, conversion; and its status.

Called by the record of the kind; `crd_schema_validation` validates the schemas.

kube-apiserver stores a schema, column or subresource that is equal in all versions once, beside the versions: its
errors have paths in `spec.validation`, `spec.subresources`, ... and are reported once.

Source: the API documentation of CustomResourceDefinition; kube-apiserver's validation messages.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from podscaler.api.kinds.apiextensions import crd_conditions, crd_schema_validation
from podscaler.api.machinery import names as name_rules
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, required, too_many
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object
from podscaler.api.text import quoting

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVED = "api-approved.kubernetes.io"
_WARNING_MAX_CHARACTERS = 256
_SHARED_FIELDS = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Field of a version -> its name in `spec`, where kube-apiserver stores it if it is equal in all versions."""
STRATEGIES = ("None", "Webhook")
_REVIEW_VERSIONS = ("v1", "v1beta1")
PORT_MAX = 65_535


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a definition; `old` is the stored one, None for a new one."""
    spec = new["spec"]
    errors = _name_errors(new) if old is None else []
    errors += _spec_errors(spec)
    stored_versions = (new.get("status") or {}).get("storedVersions") or []
    errors += _stored_version_errors(stored_versions, spec.get("versions") or [])
    if old is not None:
        errors += _change_errors(spec, old)
    errors += _approval_errors(new, old)
    if spec.get("preserveUnknownFields") and not (old or {}).get("spec", {}).get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status."""
    status = new.get("status") or {}
    return _names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")


def warnings(new: Object, _old: Object | None) -> list[str]:
    """The warnings about unknown formats, and about sets that cannot be merged."""
    texts: list[str] = []
    for version in new["spec"].get("versions") or []:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        unknown = crd_schema_validation.unknown_formats(schema)
        texts += [f"unrecognized format {quoting.quoted(name)}" for name in unknown]
        texts += crd_schema_validation.set_warnings(schema)
    return list(dict.fromkeys(texts))


def _name_errors(crd: Object) -> list[FieldError]:
    """The errors of `name` and `generateName`, which have the same rule."""
    metadata, spec = crd["metadata"], crd["spec"]
    expected_name = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    return [
        invalid(f"metadata.{member}", metadata[member], 'must be spec.names.plural+"."+spec.group')
        for member in ("generateName", "name")
        if metadata.get(member) and metadata[member] != expected_name
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
    texts = name_rules.dns_subdomain_errors(group)
    if texts:
        return [invalid("spec.group", group, ",".join(texts))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _versions_errors(versions: list[Object]) -> list[FieldError]:
    """Errors of the versions: fields that are the same in all of them are reported once, at `spec`."""
    errors = [
        required(f"spec.versions[{index}].schema.openAPIV3Schema")
        for index, version in enumerate(versions)
        if not (version.get("schema") or {}).get("openAPIV3Schema")
    ]
    shared = [name for name in _SHARED_FIELDS if _is_shared(versions, name)]
    has_status = any("status" in (version.get("subresources") or {}) for version in versions)
    for index, version in enumerate(versions):
        errors += _version_errors(version, f"spec.versions[{index}]")
        unshared_paths = {name: f"spec.versions[{index}].{name}" for name in _SHARED_FIELDS if name not in shared}
        errors += _content_errors(version, unshared_paths, has_status="status" in (version.get("subresources") or {}))
    if versions:
        above = {name: f"spec.{_SHARED_FIELDS[name]}" for name in shared}
        errors += _content_errors(versions[0], above, has_status=has_status)
        errors += _first_version_errors(versions[0].get("name", ""))
    return errors + _set_of_versions_errors(versions)


def _is_shared(versions: list[Object], name: str) -> bool:
    return all(version.get(name) == versions[0].get(name) for version in versions)


def _set_of_versions_errors(versions: list[Object]) -> list[FieldError]:
    """Errors of the versions together: unique names, exactly one of them stored."""
    errors = []
    names = [version.get("name", "") for version in versions]
    if len(set(names)) < len(names):
        errors.append(invalid("spec.versions", _internal_form(versions), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", _internal_form(versions), text))
    return errors


def _internal_form(versions: list[Object]) -> list[Object]:
    """The versions as kube-apiserver prints them: with Go names, without the fields that are equal in all of them."""
    internal_names = {"Schema": "schema", "Subresources": "subresources"}
    internal_names |= {"AdditionalPrinterColumns": "additionalPrinterColumns", "SelectableFields": "selectableFields"}
    return [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{
                internal_name: None if _is_shared(versions, name) else version.get(name)
                for internal_name, name in internal_names.items()
            },
        }
        for version in versions
    ]


def _first_version_errors(name: str) -> list[FieldError]:
    texts = name_rules.dns_1035_label_errors(name) if name else []
    return [invalid("spec.version", name, ",".join(texts))] if texts else []


def _version_errors(version: Object, path: str) -> list[FieldError]:
    """Errors of the name and the deprecation of one version."""
    name = version.get("name", "")
    texts = name_rules.dns_1035_label_errors(name)
    errors = [invalid(f"{path}.name", name, ",".join(texts))] if texts else []
    warning = version.get("deprecationWarning")
    for text in _deprecation_texts(warning, is_deprecated=bool(version.get("deprecated"))):
        errors.append(invalid(f"{path}.deprecationWarning", warning, text))
    return errors


def _deprecation_texts(warning: str | None, *, is_deprecated: bool) -> Iterator[str]:
    """What is wrong with a deprecation warning."""
    if warning is None:
        return
    if not is_deprecated:
        yield "can only be set for deprecated versions"
    if len(warning) > _WARNING_MAX_CHARACTERS:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    for index, character in enumerate(warning):
        if not character.isprintable():
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            return


def _content_errors(version: Object, paths: dict[str, str], *, has_status: bool) -> list[FieldError]:
    """The field errors of the parts of a version that are named in `paths`."""
    checks_of_fields: dict[str, Callable[[Any, str], list[FieldError]]] = {
        "schema": lambda value, path: crd_schema_validation.validate(
            value.get("openAPIV3Schema"), f"{path}.openAPIV3Schema", has_status=has_status
        ),
        "subresources": _subresources_errors,
        "additionalPrinterColumns": lambda value, path: checks.each(value, path, _column_errors),
        "selectableFields": lambda value, path: _selectable_errors(value, path, version),
    }
    errors = []
    for name, path in paths.items():
        if version.get(name):
            errors += checks_of_fields[name](version[name], path)
    return errors


def _subresources_errors(subresources: Object, path: str) -> list[FieldError]:
    """Errors of the JSON paths of the scale subresource."""
    scale = subresources.get("scale")
    if scale is None:
        return []
    errors = []
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        below = f"{path}.scale.{name}"
        value = scale.get(name, "")
        text = f"should be a json path under {root.rstrip('.')}"
        errors += _json_path_errors(value, below, (root,), text) if value else [required(below)]
    selector = scale.get("labelSelectorPath")
    if selector:
        text = "should be a json path under either .spec or .status"
        errors += _json_path_errors(selector, f"{path}.scale.labelSelectorPath", (".spec.", ".status."), text)
    return errors


def _json_path_errors(value: str, path: str, roots: tuple[str, ...], text: str) -> list[FieldError]:
    if not value.startswith("."):
        return [invalid(path, value, "must be a simple json path starting with .")]
    return [] if value.startswith(roots) else [invalid(path, value, text)]


def _column_errors(column: Object, path: str) -> list[FieldError]:
    errors = checks.present(column.get("name"), f"{path}.name")
    kind, form, json_path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    one_of = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        errors.append(required(f"{path}.type", one_of))
    elif kind not in _COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", kind, one_of))
    if form and form not in _COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not json_path:
        errors.append(required(f"{path}.JSONPath"))
    elif not json_path.startswith("."):
        errors.append(invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with ."))
    return errors


def _selectable_errors(fields: list[Object], path: str, version: Object) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, selectable_field in enumerate(fields):
        json_path = selectable_field.get("jsonPath", "")
        errors += crd_schema_validation.selectable_errors(json_path, schema, f"{path}[{index}].jsonPath")
        if json_path in seen:
            errors.append(duplicate(f"{path}[{index}].jsonPath", json_path))
        seen.add(json_path)
    if len(fields) > crd_schema_validation.MAX_SELECTABLE_FIELDS:
        errors.append(too_many(path, len(fields), crd_schema_validation.MAX_SELECTABLE_FIELDS))
    return errors


def _names_errors(names: Object, path: str) -> list[FieldError]:
    errors = []
    for name in ("plural", "singular"):
        errors += _label_errors(names.get(name, ""), f"{path}.{name}")
    for name in ("kind", "listKind"):
        texts = name_rules.dns_1035_label_errors(names.get(name, "").lower()) if names.get(name) else []
        mixed = f"may have mixed case, but should otherwise match: {','.join(texts)}"
        errors += [invalid(f"{path}.{name}", names[name], mixed)] if texts else []
    for name in ("shortNames", "categories"):
        for index, text in enumerate(names.get(name) or []):
            errors += _label_errors(text, f"{path}.{name}[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return errors


def _label_errors(text: str, path: str, *, is_optional: bool = True) -> list[FieldError]:
    texts = name_rules.dns_1035_label_errors(text) if text or not is_optional else []
    return [invalid(path, text, ",".join(texts))] if texts else []


def _stored_version_errors(stored_versions: list[str], versions: list[Object]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored_versions:
        return [invalid(path, None, "must have at least one stored version")]
    names = {version.get("name", "") for version in versions}
    errors = [
        invalid(path, stored_versions, f"must have the storage version {version.get('name', '')}")
        for version in versions
        if version.get("storage") and version.get("name", "") not in stored_versions
    ]
    unknown = [(index, name) for index, name in enumerate(stored_versions) if name not in names]
    return errors + [invalid(f"{path}[{index}]", name, _still_stored(name)) for index, name in unknown]


def _still_stored(name: str) -> str:
    return (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
        f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )


def _change_errors(spec: Object, old: Object) -> list[FieldError]:
    """The errors of changed fields: scope and kind can change until the definition is established."""
    before = old["spec"]
    pairs = [("spec.group", spec.get("group"), before.get("group"))]
    pairs.append(("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural")))
    if crd_conditions.is_true(old, crd_conditions.ESTABLISHED):
        pairs.append(("spec.scope", spec.get("scope"), before.get("scope")))
        pairs.append(("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind")))
    return [invalid(path, new, checks.IMMUTABLE) for path, new, old_value in pairs if new != old_value]


def _approval_errors(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a protected group (`*.k8s.io`) without the annotation about its approval."""
    group = new["spec"].get("group", "")
    if not (f".{group}".endswith((".k8s.io", ".kubernetes.io"))):
        return []
    approval = _approval(new)
    state = _approval_state(approval)
    if state == "approved" or (old is not None and _approval_state(_approval(old)) == state):
        return []
    path = f"metadata.annotations[{_APPROVED}]"
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if state == "missing":
        return [required(path, f'protected groups must have approval annotation "{_APPROVED}", {see}')]
    how = 'with either a URL or a reason starting with "unapproved"'
    return [invalid(path, approval, f'protected groups must have approval annotation "{_APPROVED}" {how}, {see}')]


def _approval(crd: Object) -> str:
    text: str = (crd["metadata"].get("annotations") or {}).get(_APPROVED, "")
    return text


def _approval_state(approval: str) -> str:
    if not approval:
        return "missing"
    if approval.startswith("unapproved"):
        return "approved"
    try:
        parts = urlsplit(approval)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"


def _conversion_errors(conversion: Object, path: str) -> list[FieldError]:
    """The field errors of a conversion."""
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook")
    errors = checks.one_of(strategy, f"{path}.strategy", STRATEGIES)
    if not strategy:
        errors = [required(f"{path}.strategy")]
    config = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if strategy == "Webhook":
        return errors + _client_errors(config, f"{path}.webhookClientConfig") + _review_errors(versions, path)
    text = "should not be set when strategy is not set to Webhook"
    errors += [forbidden(f"{path}.webhookClientConfig", text)] if config is not None else []
    return errors + ([forbidden(f"{path}.conversionReviewVersions", text)] if versions else [])


def _client_errors(config: Object | None, path: str) -> list[FieldError]:
    if config is None:
        return [required(path, "required when strategy is set to Webhook")]
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return _url_errors(url, f"{path}.url") if url is not None else _service_errors(service or {}, f"{path}.service")


def _url_errors(url: str, path: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{form}")]
    errors = checks.holds(parts.scheme == "https", path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    errors += checks.holds(parts.netloc, path, parts.netloc, f"host must be specified{form}")
    if parts.username is not None:
        errors.append(invalid(path, parts.username, "user information is not permitted in the URL"))
    errors += checks.holds(not parts.fragment, path, parts.fragment, "fragments are not permitted in the URL")
    return errors + checks.holds(not parts.query, path, parts.query, "query parameters are not permitted in the URL")


def _service_errors(service: Object, path: str) -> list[FieldError]:
    errors = checks.present(service.get("name"), f"{path}.name", "service name is required")
    errors += checks.present(service.get("namespace"), f"{path}.namespace", "service namespace is required")
    port = service.get("port", 443)
    if not 1 <= port <= PORT_MAX:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{path}.port", port, text))
    return errors


def _review_errors(versions: list[str], path: str) -> list[FieldError]:
    below = f"{path}.conversionReviewVersions"
    if not versions:
        return [required(below)]
    errors = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{below}[{index}]", version, "duplicate version"))
            continue
        texts = name_rules.dns_1035_label_errors(version)
        errors += [invalid(f"{below}[{index}]", version, ",".join(texts))] if texts else []
    if not set(versions) & set(_REVIEW_VERSIONS):
        errors.append(invalid(below, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors
