"""What is wrong with `spec.conversion` of a CustomResourceDefinition.

Called by `crd_validation`. Source: the API documentation of CustomResourceConversion; upstream's validation messages,
which name the fields as v1beta1 did.
"""

from urllib.parse import urlsplit

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

STRATEGIES = ("None", "Webhook")
_REVIEW_VERSIONS = ("v1", "v1beta1")
PORT_MAX = 65_535


def validate(conversion: Object, path: str) -> list[FieldError]:
    """What is wrong with a conversion."""
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook")
    found = checks.one_of(strategy, f"{path}.strategy", STRATEGIES)
    if not strategy:
        found = [required(f"{path}.strategy")]
    config = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if strategy == "Webhook":
        return found + _client_errors(config, f"{path}.webhookClientConfig") + _review_errors(versions, path)
    text = "should not be set when strategy is not set to Webhook"
    found += [forbidden(f"{path}.webhookClientConfig", text)] if config is not None else []
    return found + ([forbidden(f"{path}.conversionReviewVersions", text)] if versions else [])


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
    found = []
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.netloc:
        found.append(invalid(path, parts.netloc, f"host must be specified{form}"))
    if parts.username is not None:
        found.append(invalid(path, parts.username, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def _service_errors(service: Object, path: str) -> list[FieldError]:
    found = checks.present(service.get("name"), f"{path}.name", "service name is required")
    found += checks.present(service.get("namespace"), f"{path}.namespace", "service namespace is required")
    port = service.get("port", 443)
    if not 1 <= port <= PORT_MAX:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid(f"{path}.port", port, text))
    return found


def _review_errors(versions: list[str], path: str) -> list[FieldError]:
    below = f"{path}.conversionReviewVersions"
    if not versions:
        return [required(below)]
    found = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(invalid(f"{below}[{index}]", version, "duplicate version"))
            continue
        texts = names.dns_1035_label_faults(version)
        found += [invalid(f"{below}[{index}]", version, ",".join(texts))] if texts else []
    if not set(versions) & set(_REVIEW_VERSIONS):
        found.append(invalid(below, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return found
