"""Validates references in specs: to objects by group, kind and name, to keys of ConfigMaps, to controllers by a name.

    kind_and_name_errors({"kind": "Deployment", "name": ""}, "spec.scaleTargetRef")
    [FieldError("FieldValueRequired", "spec.scaleTargetRef.name", "Required value")]

Called by the validation in `podscaler.api.kinds`. `path` is that of the field in errors. A `reference` is the part of a
spec that refers to an object, as JSON object.

Source: docs/spec/api.md 2.3 (spec), 2.5 (Name rules); kube-apiserver's messages (golden captures).
"""

import re

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_KEY_MAX_BYTES = 253
_CONFIG_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PATH_IN_DOMAIN_TEXT = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATH_IN_DOMAIN = re.compile(_PATH_IN_DOMAIN_TEXT)


def kind_and_name_errors(reference: Object, path: str) -> list[FieldError]:
    """The field errors of `kind` and `name` of a reference: missing, or no segment of a URL path."""
    errors = []
    for field in ("kind", "name"):
        value, field_path = reference.get(field, ""), f"{path}.{field}"
        errors += checks.required_form(value, field_path, names.path_segment_errors)
    return errors


def api_version_errors(api_version: str, path: str) -> list[FieldError]:
    """The field error of an `apiVersion` (`apps/v1`) with more than one slash."""
    message = f"unexpected GroupVersion string: {api_version}"
    return checks.holds(api_version.count("/") <= 1, path, api_version, message)


def typed_local_errors(reference: Object, path: str) -> list[FieldError]:
    """The field errors of a reference like TypedLocalObjectReference: `apiGroup` (may be missing), `kind`, `name`."""
    errors = checks.well_formed_if_set(reference.get("apiGroup"), f"{path}.apiGroup", names.dns_subdomain_errors)
    return errors + kind_and_name_errors(reference, path)


def config_key_messages(key: str) -> list[str]:
    """kube-apiserver's messages about a key of a ConfigMap or Secret, which may become a file name; empty if valid."""
    is_long = len(key.encode()) > _CONFIG_KEY_MAX_BYTES
    messages = [f"must be no more than {_CONFIG_KEY_MAX_BYTES} characters"] if is_long else []
    if not _CONFIG_KEY.fullmatch(key):
        messages.append(_CONFIG_KEY_MESSAGE)
    if key in (".", ".."):
        messages.append(f"may not be '{key}'")
    elif key.startswith(".."):
        messages.append("may not start with '..'")
    return messages


def domain_path_errors(name: str, path: str) -> list[FieldError]:
    """The field errors of the name of a controller, such as `acme.io/foo`: a domain, and a path within it."""
    if not name:
        return [required(path)]
    domain, _, path_in_domain = name.partition("/")
    if not domain or not path_in_domain:
        return [invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = checks.well_formed(domain, path, names.dns_subdomain_errors)
    message = f"Invalid path (regex used for validation is '{_PATH_IN_DOMAIN_TEXT}')"
    return errors + checks.holds(_PATH_IN_DOMAIN.fullmatch(path_in_domain), path, path_in_domain, message)
