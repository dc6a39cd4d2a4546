"""Validates the containers of a pod spec: names, images, ports, probes, lifecycle handlers, resources.

Called by `pod_validation`. `env_validation`, `volumes.volume_validation` (mounts) and `security_context_validation`
check the other fields of containers. A check of a new field of all containers: a line in `_container_errors`; a new
kind of handler: _HANDLER_TYPES and `_action_errors`. An `Object` is the part of an API object that the name of the
argument says, as a JSON object after defaulting; `path` is its path in errors. Quantities were checked when they were
decoded.

Source: kube-apiserver's messages (tests/conformance/golden; the API reference of core/v1).
Differs: the time of a `sleep` hook is not compared with the grace period of the pod.
"""

import re
from collections.abc import Mapping
from functools import partial

from podscaler.api.kinds.pods import env_validation, security_context_validation
from podscaler.api.kinds.volumes import volume_validation
from podscaler.api.machinery import names, ports
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import UNIT_MILLI, Quantity
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLER_TYPES = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+")
_HEADER_NAME_MESSAGE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate(spec: Object, path: str, volume_names: frozenset[str]) -> list[FieldError]:
    """The field errors of containers and init containers, in kube-apiserver's order.

    Args:
        volume_names: the names of the volumes of the pod spec, which containers may mount.
    """
    containers, init_containers = spec.get("containers") or [], spec.get("initContainers") or []
    if not containers:
        return [required(f"{path}.containers")]
    earlier_names: set[str] = set()
    check_container = partial(_container_errors, volume_names=volume_names, earlier_names=earlier_names)
    errors = []
    for index, container in enumerate(containers):
        item_path = f"{path}.containers[{index}]"
        errors += check_container(container, item_path) + _hook_and_probe_errors(container, item_path)
    errors += _host_port_errors(containers, f"{path}.containers")
    has_host_users = spec.get("hostUsers") is not False
    check_security_context = partial(security_context_validation.container_errors, has_host_users=has_host_users)
    errors += checks.each(containers, f"{path}.containers", check_security_context)
    errors += checks.each(init_containers, f"{path}.initContainers", check_security_context)
    for index, container in enumerate(init_containers):
        item_path = f"{path}.initContainers[{index}]"
        errors += check_container(container, item_path) + _init_container_errors(container, item_path)
    return errors


def _container_errors(
    container: Object, path: str, volume_names: frozenset[str], earlier_names: set[str]
) -> list[FieldError]:
    """Field errors of the fields that containers and init containers share.

    Args:
        volume_names: the names of the pod's volumes.
        earlier_names: the names of the containers before this one; the name of this one is added.
    """
    name, image = container.get("name", ""), container.get("image", "")
    errors = checks.required_form(name, f"{path}.name", names.dns_label_errors)
    errors += checks.not_repeated(name, f"{path}.name", earlier_names) if name else []
    errors += checks.required_form(image, f"{path}.image", _image_messages)
    policy = container.get("terminationMessagePolicy")
    errors += checks.required_one_of(policy, f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES)
    if container_ports := container.get("ports"):
        port_names: set[str] = set()
        errors += checks.each(container_ports, f"{path}.ports", partial(_port_errors, earlier_names=port_names))
    if variables := container.get("env"):
        errors += checks.each(variables, f"{path}.env", env_validation.variable_errors)
    if env_from := container.get("envFrom"):
        errors += env_validation.env_from_errors(env_from, f"{path}.envFrom")
    errors += volume_validation.mount_errors(container, f"{path}.volumeMounts", volume_names)
    errors += checks.required_one_of(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL_POLICIES)
    resources = container.get("resources")
    return errors + _resource_errors(resources, f"{path}.resources") if resources else errors


def _image_messages(image: str) -> list[str]:
    return [] if image == image.strip() else ["must not have leading or trailing whitespace"]


def _init_container_errors(container: Object, path: str) -> list[FieldError]:
    """Errors of the restart policy, and of hooks and probes, which only sidecars (restart policy Always) may have."""
    policy = container.get("restartPolicy")
    errors = checks.optional_one_of(policy, f"{path}.restartPolicy", _RESTART_POLICIES)
    if policy == "Always":
        return errors + _hook_and_probe_errors(container, path)
    message = "may not be set for init containers without restartPolicy=Always"
    set_fields = [field for field in ("lifecycle", *_PROBES) if container.get(field) is not None]
    return errors + [forbidden(f"{path}.{field}", message) for field in set_fields]


def _port_errors(port: Object, path: str, earlier_names: set[str]) -> list[FieldError]:
    """Field errors of a port of a container; its name is added to `earlier_names`, which must not repeat."""
    name, container_port, host_port = port.get("name", ""), port.get("containerPort", 0), port.get("hostPort")
    form_errors = checks.well_formed_if_set(name, f"{path}.name", ports.name_messages)
    repetition_errors = checks.not_repeated(name, f"{path}.name", earlier_names) if name else []
    errors = form_errors or repetition_errors
    field_path = f"{path}.containerPort"
    errors += ports.number_errors(container_port, field_path) if container_port else [required(field_path)]
    errors += ports.number_errors(host_port, f"{path}.hostPort") if host_port else []
    return errors + ports.protocol_errors(port.get("protocol", ""), f"{path}.protocol")


def _host_port_errors(containers: list[Object], path: str) -> list[FieldError]:
    """The errors of host ports (protocol, address and number) that two ports of a pod request."""
    earlier_ports: set[str] = set()
    errors = []
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.get("ports") or []):
            if port.get("hostPort"):
                host_socket = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                field_path = f"{path}[{index}].ports[{port_index}].hostPort"
                errors += checks.not_repeated(host_socket, field_path, earlier_ports)
    return errors


def _hook_and_probe_errors(container: Object, path: str) -> list[FieldError]:
    """Field errors of the hooks (`lifecycle`) and the probes of a container."""
    errors = []
    if lifecycle := container.get("lifecycle"):
        for field in ("postStart", "preStop"):
            errors += checks.optional(lifecycle.get(field), f"{path}.lifecycle.{field}", _handler_errors)
    for name in _PROBES:
        check_probe = partial(_probe_errors, is_readiness=name == "readinessProbe")
        errors += checks.optional(container.get(name), f"{path}.{name}", check_probe)
    return errors


def _probe_errors(probe: Object, path: str, *, is_readiness: bool) -> list[FieldError]:
    """Field errors of a probe; only a readiness probe may need several successes, and only others end containers."""
    grace_s, field_path = probe.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    errors = _handler_errors(probe, path)
    for name in _PROBE_NUMBERS:
        errors += checks.optional(probe.get(name), f"{path}.{name}", checks.not_negative)
    errors += checks.holds(grace_s is None or grace_s > 0, field_path, grace_s, "must be greater than 0")
    if is_readiness:
        return errors + checks.holds(grace_s is None, field_path, grace_s, "must not be set for readinessProbes")
    threshold = probe.get("successThreshold", 1)
    return errors + checks.holds(threshold == 1, f"{path}.successThreshold", threshold, "must be 1")


def _handler_errors(handler: Object, path: str) -> list[FieldError]:
    """Errors of a probe or hook, which must have exactly one action; of several, only the first is checked."""
    set_types = [name for name in _HANDLER_TYPES if handler.get(name) is not None]
    if not set_types:
        return [required(path, "must specify a handler type")]
    handler_type, *other_types = set_types
    errors = _action_errors(handler_type, handler[handler_type], f"{path}.{handler_type}")
    return errors + [forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in other_types]


def _action_errors(handler_type: str, action: Object, path: str) -> list[FieldError]:
    """Field errors of the action of a probe or hook; `handler_type` is one of _HANDLER_TYPES."""
    if handler_type == "exec":
        return checks.present(action.get("command"), f"{path}.command")
    if handler_type == "sleep":
        seconds = action.get("seconds", 0)
        return checks.holds(seconds >= 0, path, seconds, "must be greater than 0")  # 0 is valid, too
    port_errors = ports.target_errors(action.get("port", 0), f"{path}.port")
    if handler_type != "httpGet":
        return port_errors
    return checks.present(action.get("path"), f"{path}.path") + port_errors + _http_errors(action, path)


def _http_errors(action: Object, path: str) -> list[FieldError]:
    """Errors of the scheme and of the names of headers; as in kube-apiserver, host and values of headers are free."""
    errors = checks.one_of(action.get("scheme", ""), f"{path}.scheme", _SCHEMES)
    for header in action.get("httpHeaders") or []:
        name = header.get("name", "")
        errors += checks.holds(_HEADER_NAME.fullmatch(name), f"{path}.httpHeaders", name, _HEADER_NAME_MESSAGE)
    return errors


def _resource_errors(resources: Object, path: str) -> list[FieldError]:
    """Field errors of limits and requests: of each amount, and of a request above its limit."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    limit_quantities = {name: Quantity.parse(str(limits[name])) for name in sorted(limits)}
    request_quantities = {name: Quantity.parse(str(requests[name])) for name in sorted(requests)}
    errors = []
    for name in limit_quantities:
        errors += _amount_errors(name, limits, limit_quantities, f"{path}.limits")
    for name in request_quantities:
        errors += _amount_errors(name, requests, request_quantities, f"{path}.requests")
    for name, amount in request_quantities.items():
        errors += _limit_errors(name, amount, limit_quantities.get(name), path)
    return errors


def _amount_errors(name: str, amounts: Object, quantities: Mapping[str, Quantity], path: str) -> list[FieldError]:
    """Field errors of one amount, which must not be negative, and must be whole for extended resources.

    Args:
        name: the resource.
        amounts: resource -> amount as the client sent it, which messages show.
        quantities: resource -> parsed amount.
        path: the path of `amounts`.
    """
    amount_path, quantity = f"{path}[{name}]", quantities[name]
    errors = checks.well_formed(name, amount_path, names.container_resource_name_errors)
    if quantity.sign() < 0:
        errors.append(invalid(amount_path, amounts[name], checks.NOT_NEGATIVE))
    elif _is_whole(name) and quantity.milli_value() % UNIT_MILLI:
        errors.append(invalid(amount_path, amounts[name], "must be an integer"))
    return errors


def _limit_errors(name: str, request: Quantity, limit: Quantity | None, path: str) -> list[FieldError]:
    """The error of a request of the resource `name` that its limit (None: it has none) does not allow.

    Resources in whole units need a limit equal to the request. `path` is that of `resources`.
    """
    if limit is None:
        message = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", message)] if _is_whole(name) else []
    if _is_whole(name) and request != limit:
        return [invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")]
    if request > limit:
        return [invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _is_whole(name: str) -> bool:
    """Whether a resource has whole units, which cannot be overcommitted: extended resources and huge pages."""
    return "/" in name or name.startswith("hugepages-")
