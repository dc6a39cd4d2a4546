"""Resource definition of Node (core/v1): defaults, the taint of a new node, the columns of `kubectl get nodes`.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field of `nodeInfo`: _NODE_INFO_FIELDS; a new column, a cell in
`_cells`.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1.
"""

from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource import status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_ID_FIELDS = ("machineID", "systemUUID", "bootID")
_VERSION_FIELDS = ("kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion")
_NODE_INFO_FIELDS = (*_ID_FIELDS, *_VERSION_FIELDS, "operatingSystem", "architecture")
"""The fields of status.nodeInfo, which are empty if the node does not report them."""
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def set_defaults(node: Object) -> None:
    """API defaults, in place: allocatable is the capacity, fields that a node always has are empty."""
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = {**status["capacity"]}
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
    info = status.setdefault("nodeInfo", {})
    for field in _NODE_INFO_FIELDS:
        info.setdefault(field, "")


def _prepare_create(new: Object) -> None:
    """Adds the taint not-ready, in place: no pod without toleration is scheduled on the node until it is removed."""
    taints = new["spec"].setdefault("taints", [])
    if not any(taint.get("key") == _NOT_READY_TAINT["key"] for taint in taints):
        taints.append({**_NOT_READY_TAINT})


def _role_names(labels: dict[str, str]) -> list[str]:
    """The roles of a node, sorted: from the keys and the value of role labels."""
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted(role for role in roles | {labels.get(_ROLE_LABEL, "")} if role)


def _condition_text(node: Object) -> str:
    """`Ready`, `NotReady,SchedulingDisabled`, or `Unknown` without a condition Ready."""
    ready_conditions = [
        condition
        for condition in (node.get("status") or {}).get("conditions") or []
        if condition.get("type") == "Ready"
    ]
    states = ["Ready" if condition.get("status") == "True" else "NotReady" for condition in ready_conditions]
    states = states or ["Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _address_of_type(node: Object, address_type: str) -> str:
    """The first address of that type (such as InternalIP), `<none>` if there is none."""
    addresses = (node.get("status") or {}).get("addresses") or []
    return next(
        (address.get("address", "") for address in addresses if address.get("type") == address_type), printing.NONE
    )


def _cells(node: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: state, roles, versions, addresses."""
    info = {**dict.fromkeys(_NODE_INFO_FIELDS, ""), **((node.get("status") or {}).get("nodeInfo") or {})}
    kernel = info["kernelVersion"] or printing.UNKNOWN
    return [
        _condition_text(node),
        printing.or_none(_role_names(node["metadata"].get("labels") or {})),
        info["kubeletVersion"],
        _address_of_type(node, "InternalIP"),
        _address_of_type(node, "ExternalIP"),
        info["osImage"] or printing.UNKNOWN,
        f"{kernel} ({info['architecture']})" if info["architecture"] else kernel,
        info["containerRuntimeVersion"] or printing.UNKNOWN,
    ]


def _is_unschedulable(node: Object) -> str:
    return "true" if (node.get("spec") or {}).get("unschedulable") else "false"


RESOURCE = Resource(
    group="",
    plural="nodes",
    kind="Node",
    versions=(Version("v1", "core/v1.Node", default=set_defaults),),
    namespaced=False,
    short_names=("no",),
    has_status=True,
    fields=lambda node: {"spec.unschedulable": _is_unschedulable(node)},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
    ),
    printer=tables.named(
        "node",
        Column("Status", description="Whether the node is ready for pods."),
        Column("Roles", description="What the node is labelled to be for."),
        tables.AGE,
        Column("Version", description="Version that the node reports."),
        Column("Internal-IP", description="Address of the node within the cluster.", priority=1),
        Column("External-IP", description="Address of the node for the outside.", priority=1),
        Column("OS-Image", description="Operating system of the node.", priority=1),
        Column("Kernel-Version", description="Kernel and architecture of the node.", priority=1),
        Column("Container-Runtime", description="What runs the containers on the node.", priority=1),
        cells=_cells,
        note="",
    ),
)
