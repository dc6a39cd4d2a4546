"""Validates the webhooks of webhook configurations: rules, client, selectors, match conditions.

Called by `webhookconfiguration`; `admission_policy` uses `rule_errors` and `condition_errors`, and
`podscaler.controlplane.apiserver.webhooks` REVIEW_VERSIONS, the versions of AdmissionReview that it sends. Stored
objects stay valid: match conditions that an update does not change are not checked again. A new field of webhooks: a
check in `_webhook_errors`. An `Object` is the part of an API object that the name of the argument says, as a JSON
object; `path` is its path in errors.

Source: kube-apiserver's validation of admissionregistration.k8s.io, and of the URLs and Services of webhooks.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required, too_many
from podscaler.api.resource import checks, label_selector
from podscaler.api.resource.resources import Object

_CONDITIONS_MAX = 64
_PORT_MAX = 65_535
_DEFAULT_SERVICE_PORT = 443
"""The default port of the Service of a webhook."""
_TIMEOUT_MAX_S = 30
REVIEW_VERSIONS = ("v1", "v1beta1")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_URL_FORM = "; desired format: https://host[/path]"
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_NAME_SEGMENTS_MIN = 3


def validate(webhooks: Sequence[Object], old_webhooks: Sequence[Object] | None) -> list[FieldError]:
    """The field errors of the webhooks of a configuration; `old_webhooks` are the stored ones, None on create."""
    errors: list[FieldError] = []
    keeps_conditions = old_webhooks is not None and _conditions(webhooks) == _conditions(old_webhooks)
    earlier_names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        errors += _webhook_errors(webhook, path, skips_conditions=keeps_conditions)
        errors += _review_version_errors(
            webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
        )
        if webhook.get("name"):
            errors += checks.not_repeated(webhook["name"], f"{path}.name", earlier_names)
    return errors


def _conditions(webhooks: Sequence[Object]) -> list[Any]:
    """The match conditions of each webhook, in order."""
    return [webhook.get("matchConditions") or [] for webhook in webhooks]


def _webhook_errors(webhook: Object, path: str, *, skips_conditions: bool) -> list[FieldError]:
    """Field errors of one webhook without those of its review versions; `skips_conditions`: of match conditions."""
    errors = _name_errors(webhook.get("name", ""), f"{path}.name")
    errors += checks.each(webhook.get("rules"), f"{path}.rules", rule_errors)
    errors += checks.optional_one_of(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    errors += checks.optional_one_of(webhook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    errors += _side_effect_errors(webhook.get("sideEffects"), f"{path}.sideEffects")
    timeout_s = webhook.get("timeoutSeconds")
    if timeout_s is not None and not 1 <= timeout_s <= _TIMEOUT_MAX_S:
        message = f"the timeout value must be between 1 and {_TIMEOUT_MAX_S} seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout_s, message))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector.validate(webhook.get(field) or {}, f"{path}.{field}")
    policies = ("IfNeeded", "Never")
    errors += checks.optional_one_of(webhook.get("reinvocationPolicy"), f"{path}.reinvocationPolicy", policies)
    errors += _client_config_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    if not skips_conditions:
        errors += condition_errors(webhook.get("matchConditions") or [], f"{path}.matchConditions")
    return errors


def _name_errors(name: str, path: str) -> list[FieldError]:
    """Errors of a webhook's name, a domain with at least three segments."""
    if not name:
        return [required(path)]
    messages = names.dns_subdomain_errors(name)
    if messages:
        return [invalid(path, name, ",".join(messages))]
    message = "should be a domain with at least three segments separated by dots"
    return checks.holds(name.count(".") + 1 >= _NAME_SEGMENTS_MIN, path, name, message)


def _side_effect_errors(side_effects: str | None, path: str) -> list[FieldError]:
    """Field errors of the required `sideEffects`: None or NoneOnDryRun."""
    if side_effects is None:
        return [required(path, f"must specify one of {', '.join(_SIDE_EFFECTS)}")]
    return checks.one_of(side_effects, path, _SIDE_EFFECTS)


def rule_errors(rule: Object, path: str) -> list[FieldError]:
    """The field errors of a rule with its operations."""
    operations = rule.get("operations") or []
    errors = checks.present(operations, f"{path}.operations")
    errors += _wildcard_errors(operations, f"{path}.operations", "operations")
    errors += checks.each(
        operations, f"{path}.operations", lambda operation, item_path: checks.one_of(operation, item_path, _OPERATIONS)
    )
    for field, plural_noun in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        errors += checks.present(values, f"{path}.{field}")
        errors += _wildcard_errors(values, f"{path}.{field}", plural_noun)
    errors += checks.each(rule.get("apiVersions"), f"{path}.apiVersions", checks.present)
    errors += _resource_errors(rule.get("resources") or [], f"{path}.resources")
    return errors + checks.optional_one_of(rule.get("scope"), f"{path}.scope", ("*", "Cluster", "Namespaced"))


def _wildcard_errors(values: Sequence[str], path: str, plural_noun: str) -> list[FieldError]:
    """The field error of `*` beside other values; `plural_noun` names the values in the message."""
    is_valid = len(values) < 2 or "*" not in values
    return checks.holds(is_valid, path, values, f"if '*' is present, must not specify other {plural_noun}")


def _resource_errors(resources: Sequence[str], path: str) -> list[FieldError]:
    """The errors of empty resources, and of those that a wildcard (`pods/*`) before them in the same rule covers."""
    errors = checks.present(resources, path)
    earlier_wildcards: set[str] = set()
    for index, resource in enumerate(resources):
        name, slash, subresource = resource.partition("/")
        if not resource:
            errors.append(required(f"{path}[{index}]"))
        if not slash:
            continue
        for wildcard in (f"{name}/*", f"*/{subresource}"):
            if wildcard in earlier_wildcards:
                message = f"if '{wildcard}' is present, must not specify {resource}"
                errors.append(invalid(f"{path}[{index}]", resource, message))
        if "*" in (name, subresource):
            earlier_wildcards.add(resource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in resource and resource != "*" for resource in resources):
        message = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, message))
    return errors


def _client_config_errors(client_config: Object, path: str) -> list[FieldError]:
    """Errors of a clientConfig: either a URL or a Service."""
    url, service = client_config.get("url"), client_config.get("service")
    if url is not None and service is None:
        return _url_errors(url, f"{path}.url")
    if service is not None and url is None:
        return _service_errors(service, f"{path}.service")
    return [required(path, "exactly one of url or service is required")]


def _url_errors(url: str, path: str) -> list[FieldError]:
    """The field errors of the URL of a webhook: https and a host, without user, query and fragment."""
    try:
        url_parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_URL_FORM}")]  # no Invalid, as upstream
    errors = checks.holds(
        url_parts.scheme == "https", path, url_parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"
    )
    user, at_sign, host = url_parts.netloc.rpartition("@")
    errors += checks.holds(host, path, host, f"host must be specified{_URL_FORM}")
    errors += checks.holds(not at_sign, path, user, "user information is not permitted in the URL")
    errors += checks.holds(not url_parts.fragment, path, url_parts.fragment, "fragments are not permitted in the URL")
    return errors + checks.holds(
        not url_parts.query, path, url_parts.query, "query parameters are not permitted in the URL"
    )


def _service_errors(service: Object, path: str) -> list[FieldError]:
    """The field errors of the reference to the Service of a webhook."""
    errors = checks.present(service.get("name"), f"{path}.name")
    errors += checks.present(service.get("namespace"), f"{path}.namespace")
    port = service.get("port", _DEFAULT_SERVICE_PORT)
    message = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
    errors += checks.holds(0 < port <= _PORT_MAX, f"{path}.port", port, message)
    return errors + _path_errors(service.get("path") or "/", f"{path}.path")


def _path_errors(url_path: str, path: str) -> list[FieldError]:
    """Errors of the URL path at a Service, each segment of which is a DNS subdomain."""
    if url_path == "/":
        return []
    if url_path == "//":
        return [invalid(path, url_path, "segment[0] may not be empty")]
    errors = checks.holds(url_path.startswith("/"), path, url_path, "must start with a '/'")
    for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        messages = names.dns_subdomain_errors(segment) if segment else []
        errors += [invalid(path, url_path, f"segment[{index}]: {message}") for message in messages]
        errors += checks.holds(segment, path, url_path, f"segment[{index}] may not be empty")
    return errors


def _review_version_errors(versions: Sequence[str], path: str) -> list[FieldError]:
    """Field errors of `admissionReviewVersions`, one of which must be supported by this server."""
    accepted = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {accepted}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            errors += checks.well_formed(version, f"{path}[{index}]", names.dns_1035_label_errors)
    is_any_supported = any(version in REVIEW_VERSIONS for version in versions)
    return errors + checks.holds(is_any_supported, path, versions, f"must include at least one of {accepted}")


def condition_errors(conditions: Sequence[Object], path: str, *, has_params: bool = False) -> list[FieldError]:
    """The field errors of match conditions; `has_params`: whether there is the variable `params`."""
    errors = [too_many(path, len(conditions), _CONDITIONS_MAX)] if len(conditions) > _CONDITIONS_MAX else []
    earlier_names: set[str] = set()
    for index, condition in enumerate(conditions):
        name, expression = condition.get("name", ""), (condition.get("expression") or "").strip()
        field_path = f"{path}[{index}]"
        message = _find_condition_error(expression, has_params=has_params) if expression else None
        errors += checks.present(expression, f"{field_path}.expression")
        errors += [invalid(f"{field_path}.expression", expression, message)] if message else []
        errors += checks.required_form(name, f"{field_path}.name", names.label_key_errors)
        errors += checks.not_repeated(name, f"{field_path}.name", earlier_names) if name else []
    return errors


def _find_condition_error(expression: str, *, has_params: bool) -> str | None:
    """The message about an expression that does not compile or is no bool; None for a valid one."""
    from podscaler.api.kinds.policy import admission_expressions  # importing CEL is slow

    return admission_expressions.PolicyCompiler(has_params=has_params).find_error(expression, "bool")
