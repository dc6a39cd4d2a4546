"""Validates names of objects and resources, label keys and label values.

    dns_label_errors("web-1")       []
    dns_label_errors("web.1")       ["must not contain dots"]

Called by the validation of served kinds and by label selectors. Each `*_errors` function returns kube-apiserver's
messages, an empty list for a valid text; the caller makes field errors of them. Lengths are in bytes. A new kind of
name: a pattern, its message and an `*_errors` function.

Source: Kubernetes v1.37.0, object names and label syntax (docs/spec/api.md 2.5 (Name rules), docs/spec/decision.md 12.3
(Parsing scale.status.selector)).
"""

import re

# The texts of the patterns, which messages quote. They match `web-1`, `web.example.com`, `My_name.1`.
_DNS_LABEL_TEXT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_TEXT = rf"{_DNS_LABEL_TEXT}(\.{_DNS_LABEL_TEXT})*"
_QUALIFIED_TEXT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE_TEXT = f"({_QUALIFIED_TEXT})?"

_RFC_1035_TEXT = "[a-z]([-a-z0-9]*[a-z0-9])?"

_LABEL_MAX_BYTES = 63
_SUBDOMAIN_MAX_BYTES = 253

_DNS_LABEL = re.compile(_DNS_LABEL_TEXT)
_RFC_1035 = re.compile(_RFC_1035_TEXT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_TEXT)
_QUALIFIED = re.compile(_QUALIFIED_TEXT)
_LABEL_VALUE = re.compile(_LABEL_VALUE_TEXT)

_DNS_LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_DNS_LABEL_TEXT}')"
)
_RFC_1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    f" '{_RFC_1035_TEXT}')"
)
_DOTS_MESSAGE = "must not contain dots"
_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_TEXT}')"
)
_WILDCARD_TEXT = rf"\*\.{_SUBDOMAIN_TEXT}"
_WILDCARD = re.compile(_WILDCARD_TEXT)
_WILDCARD_MESSAGE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower"
    " case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used"
    f" for validation is '{_WILDCARD_TEXT}')"
)
_QUALIFIED_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED_TEXT}')"
)
_TOO_MANY_SLASHES_MESSAGE = (
    f"a valid label key {_QUALIFIED_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '{_LABEL_VALUE_TEXT}')"
)

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUOTA_RESOURCES = frozenset(
    f"{amount}.{resource}" for amount in ("requests", "limits") for resource in _CONTAINER_RESOURCES
) | {
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
}


def path_segment_errors(name: str) -> list[str]:
    """The errors of `name` as one segment of a URL path (any object name of any kind)."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def dns_label_errors(name: str) -> list[str]:
    """The errors of `name` as an RFC 1123 label (namespaces, containers)."""
    errors = _object_name_length_errors(name, _LABEL_MAX_BYTES)
    if not _DNS_LABEL.fullmatch(name):
        errors.append(_DOTS_MESSAGE if _SUBDOMAIN.fullmatch(name) else _DNS_LABEL_MESSAGE)
    return errors


def dns_1035_label_errors(name: str) -> list[str]:
    """The errors of `name` as an RFC 1035 label (names and versions of custom resources)."""
    return _object_name_length_errors(name, _LABEL_MAX_BYTES) + _form_errors(name, _RFC_1035, _RFC_1035_MESSAGE)


def dns_subdomain_errors(name: str) -> list[str]:
    """The errors of `name` as an RFC 1123 subdomain (names of most objects)."""
    return _object_name_length_errors(name, _SUBDOMAIN_MAX_BYTES) + _form_errors(name, _SUBDOMAIN, _SUBDOMAIN_MESSAGE)


def wildcard_subdomain_errors(name: str) -> list[str]:
    """The errors of `name` as an RFC 1123 subdomain whose first label is `*` (hosts of ingresses)."""
    return _object_name_length_errors(name, _SUBDOMAIN_MAX_BYTES) + _form_errors(name, _WILDCARD, _WILDCARD_MESSAGE)


def mask_trailing_dash(prefix: str) -> str:
    """A generateName in the form that is validated as a name, since it may end with a dash.

    As upstream's maskTrailingDash, it replaces the dash and the character before it.
    """
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def label_key_errors(key: str) -> list[str]:
    """The errors of `key` as a label key, annotation key or any other qualified name."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return [_TOO_MANY_SLASHES_MESSAGE]
    errors = _prefix_errors(prefixes[0]) if prefixes else []
    return errors + [f"name part {error}" for error in _name_part_errors(name)]


def label_value_errors(value: str) -> list[str]:
    """The errors of `value` as the value of a label."""
    return _label_length_errors(value, _LABEL_MAX_BYTES) + _form_errors(value, _LABEL_VALUE, _LABEL_VALUE_MESSAGE)


def container_resource_name_errors(name: str) -> list[str]:
    """The errors of `name` as the name of a resource that a container requests.

    Differs: docs/spec/api.md covers names without a slash only; others follow the rule for extended resources.
    """
    errors = resource_name_errors(name)
    if "/" in name:
        return errors + ([] if _has_native_domain(name) else _extended_resource_errors(name))
    return errors + ([] if _is_container_resource(name) else ["must be a standard resource for containers"])


def resource_name_errors(name: str) -> list[str]:
    """The errors of `name` as the name of any resource: a standard one, or one with a domain."""
    errors = label_key_errors(name)
    if not errors and "/" not in name and not _is_standard_resource(name):
        return ["must be a standard resource type or fully qualified"]
    return errors


def quota_resource_name_errors(name: str) -> list[str]:
    """The errors of `name` as the name of a resource of a quota."""
    is_allowed = "/" in name or is_standard_quota_resource(name)  # any resource with a domain is allowed
    return resource_name_errors(name) + ([] if is_allowed else ["must be a standard resource for quota"])


def is_standard_quota_resource(name: str) -> bool:
    """Whether `name` is a standard resource of quotas: any but `storage`, which only claims request."""
    return name != "storage" and _is_standard_resource(name)


def is_native_resource(name: str) -> bool:
    """Whether Kubernetes defines the resource: its name has no domain, or one of kubernetes.io."""
    return "/" not in name or _has_native_domain(name)


def is_extended_resource(name: str) -> bool:
    """Whether `name` names an extended resource, which has integer quantities."""
    return not is_native_resource(name) and not _extended_resource_errors(name)


def _object_name_length_errors(name: str, limit_bytes: int) -> list[str]:
    """The error of an object's name that is too long; kube-apiserver counts bytes and calls them characters."""
    return [f"must be no more than {limit_bytes} characters"] if len(name.encode()) > limit_bytes else []


def _label_length_errors(name: str, limit_bytes: int) -> list[str]:
    """The error of a part of a label key, or of a label value, that is too long."""
    return [f"must be no more than {limit_bytes} bytes"] if len(name.encode()) > limit_bytes else []


def _form_errors(text: str, pattern: re.Pattern[str], message: str) -> list[str]:
    """The error `message` of a text that the pattern does not match as a whole."""
    return [] if pattern.fullmatch(text) else [message]


def _prefix_errors(prefix: str) -> list[str]:
    """The errors of the part of a label key before the slash, a DNS subdomain."""
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = _label_length_errors(prefix, _SUBDOMAIN_MAX_BYTES) + _form_errors(prefix, _SUBDOMAIN, _SUBDOMAIN_MESSAGE)
    return [f"prefix part {error}" for error in errors]


def _name_part_errors(name: str) -> list[str]:
    """The errors of the part of a label key after the slash."""
    errors = _label_length_errors(name, _LABEL_MAX_BYTES) if name else ["must be non-empty"]
    return errors + _form_errors(name, _QUALIFIED, _QUALIFIED_MESSAGE)


def _is_container_resource(name: str) -> bool:
    return name in _CONTAINER_RESOURCES or name.startswith("hugepages-")


def _is_standard_resource(name: str) -> bool:
    return _is_container_resource(name) or name in _QUOTA_RESOURCES or name.startswith("requests.hugepages-")


def _has_native_domain(name: str) -> bool:
    return "kubernetes.io/" in name


def _extended_resource_errors(name: str) -> list[str]:
    """The error of a name with a domain that does not follow the rule for extended resources."""
    # A quota names such a resource with `requests.` before it, which must be a valid name, too.
    if name.startswith("requests.") or label_key_errors(f"requests.{name}"):
        return ["doesn't follow extended resource name standard"]
    return []
