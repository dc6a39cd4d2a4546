"""What is wrong with probes and lifecycle handlers of a container.

Called by `container_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

import re

from podscaler.api.machinery import ports
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource.resources import Object

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+")
_HEADER_NAME_FAULT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
_TIMES = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def faults(probe: Object, path: str) -> list[FieldError]:
    """What is wrong with the probe at `path`, whose last part says which of the three it is."""
    found = handler_faults(probe, path)
    for name in _TIMES:
        value = probe.get(name) or 0
        if value < 0:
            found.append(invalid(f"{path}.{name}", value, "must be greater than or equal to 0"))
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        found.append(invalid(f"{path}.terminationGracePeriodSeconds", grace_s, "must be greater than 0"))
    if path.endswith("readinessProbe"):
        if grace_s is not None:
            found.append(
                invalid(f"{path}.terminationGracePeriodSeconds", grace_s, "must not be set for readinessProbes")
            )
    elif probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def handler_faults(handler: Object, path: str) -> list[FieldError]:
    """What is wrong with the one thing that a probe or hook does."""
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    found = _detail(given[0], handler[given[0]], f"{path}.{given[0]}")
    return found + [forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in given[1:]]


def _detail(kind: str, action: Object, path: str) -> list[FieldError]:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{path}.command")]
    if kind == "httpGet":
        return _http_faults(action, path)
    if kind == "sleep":
        return [] if action.get("seconds", 0) >= 0 else [invalid(path, action["seconds"], "must be greater than 0")]
    return ports.target_faults(action.get("port", 0), f"{path}.port")


def _http_faults(action: Object, path: str) -> list[FieldError]:
    """Those of an `httpGet`. Path, host and values of headers may be anything here, as upstream; nodes check them."""
    found = [] if action.get("path") else [required(f"{path}.path")]
    found += ports.target_faults(action.get("port", 0), f"{path}.port")
    scheme = action.get("scheme", "")
    if scheme not in _SCHEMES:
        found.append(not_supported(f"{path}.scheme", scheme, _SCHEMES))
    for header in action.get("httpHeaders") or []:
        if not _HEADER_NAME.fullmatch(header.get("name", "")):
            found.append(invalid(f"{path}.httpHeaders", header.get("name", ""), _HEADER_NAME_FAULT))
    return found
