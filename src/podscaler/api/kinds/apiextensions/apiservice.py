"""Resource definition of APIService (apiregistration.k8s.io/v1), which names the server of an API group and version.

`podscaler.controlplane.controllers.cluster.apiservices` creates one for each group and version of the API server
itself; `podscaler.controlplane.aggregator` proxies the requests for those that name a Service.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default
and its validation here.

Source: kube-aggregator: defaults, validation, the Table.
"""

import base64

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_GROUP_PRIORITY_MAX = 20_000
_VERSION_PRIORITY_MAX = 1000
DEFAULT_SERVICE_PORT = 443
_PORT_MAX = 65_535
_CONDITION_STATUSES = ("False", "True", "Unknown")


def set_defaults(api_service: Object) -> None:
    """API defaults, in place: the port of its Service."""
    service_reference = (api_service.get("spec") or {}).get("service")
    if service_reference is not None:
        service_reference.setdefault("port", DEFAULT_SERVICE_PORT)


def _prepare_create(new: Object) -> None:
    """Sets the first status, in place: Available for a group of this server itself, else none."""
    new.pop("status", None)
    if (new.get("spec") or {}).get("service") is None:
        new["status"] = {"conditions": [_available_condition(new)]}


def _available_condition(api_service: Object) -> Object:
    """The condition Available of an APIService whose group this API server itself serves."""
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": api_service["metadata"].get("creationTimestamp"),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of an APIService to be stored."""
    spec = new.get("spec") or {}
    group, version = spec.get("group", ""), spec.get("version", "")
    name, expected_name = new["metadata"].get("name", ""), f"{version}.{group}"
    errors = []
    if name != expected_name and not names.path_segment_errors(name):
        errors.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected_name}"'))
    if not group and version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        errors += checks.well_formed(group, "spec.group", names.dns_subdomain_errors)
    errors += checks.well_formed(version, "spec.version", names.dns_1035_label_errors)
    return [*errors, *_priority_errors(spec), *_service_errors(spec)]


def _priority_errors(spec: Object) -> list[FieldError]:
    """Field errors of the two priorities; the highest valid one is the bound itself, in spite of the message."""
    errors = []
    for name, upper_bound in (
        ("groupPriorityMinimum", _GROUP_PRIORITY_MAX),
        ("versionPriority", _VERSION_PRIORITY_MAX),
    ):
        priority = spec.get(name, 0)
        errors += checks.holds(
            0 < priority <= upper_bound, f"spec.{name}", priority, f"must be positive and less than {upper_bound}"
        )
    return errors


def _service_errors(spec: Object) -> list[FieldError]:
    """Field errors of `spec.service`, and of the TLS fields that depend on it."""
    service_reference = spec.get("service")
    if service_reference is None:
        return _unused_tls_errors(spec)
    errors = checks.present(service_reference.get("namespace"), "spec.service.namespace")
    errors += checks.present(service_reference.get("name"), "spec.service.name")
    port = service_reference.get("port", DEFAULT_SERVICE_PORT)
    if not 0 < port <= _PORT_MAX:
        message = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
        errors.append(invalid("spec.service.port", port, message))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        message = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", value=True, detail=message))
    return errors


def _unused_tls_errors(spec: Object) -> list[FieldError]:
    """Field errors of TLS fields in an APIService without `spec.service`, where they must not be set."""
    errors = []
    if spec.get("caBundle"):
        size_bytes = len(base64.b64decode(spec["caBundle"]))  # valid base64: decoding has checked it
        errors.append(invalid("spec.caBundle", f"{size_bytes} bytes", "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        message = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", value=True, detail=message))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a status to be stored."""
    return checks.each(
        (new.get("status") or {}).get("conditions"),
        "status.conditions",
        lambda condition, item_path: checks.one_of(
            condition.get("status", ""), f"{item_path}.status", _CONDITION_STATUSES
        ),
    )


def _service_text(api_service: Object) -> str:
    """The column SERVICE: `NAMESPACE/NAME`, or `Local` for a group that this API server itself serves."""
    service_reference = (api_service.get("spec") or {}).get("service")
    if service_reference is None:
        return "Local"
    return f"{service_reference.get('namespace', '')}/{service_reference.get('name', '')}"


def _availability_text(api_service: Object) -> str:
    """The column AVAILABLE: `True`, `False (REASON)`, or `Unknown` without the condition."""
    for condition in (api_service.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Available":
            status: str = condition.get("status", "")
            reason = condition.get("reason", "")
            return status if status == "True" or not reason else f"{status} ({reason})"
    return "Unknown"


RESOURCE = Resource(
    group="apiregistration.k8s.io",
    plural="apiservices",
    kind="APIService",
    versions=(Version("v1", "apiregistration/v1.APIService", default=set_defaults),),
    namespaced=False,
    categories=("api-extensions",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
        allows_unconditional_update=False,
    ),
    printer=tables.named(
        "APIService",
        Column("Service", description="The Service that serves the API, or Local."),
        Column("Available", description="Whether the API can be reached."),
        cells=lambda api_service, _now_ns: [_service_text(api_service), _availability_text(api_service)],
        note=": version and group",
    ),
)
