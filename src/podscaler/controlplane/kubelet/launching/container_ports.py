"""The ports of a container: their names, and where a port that may not be bound really is.

`launch` tells built-in images their port (variable PORT); probes look a port up here, the Service proxy by way of the
pod's note (`port_map`). Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podscaler.controlplane.kubelet.launching.images import ImageCommand

MAPPED_FROM: Final = 20_000
"""A low port N is mapped to 20000+N: every pod has an address of its own, so that no two can meet there."""


@dataclass(frozen=True, slots=True)
class PortPlan:
    """The port that a built-in image is told (None: nothing is told), and the ports that are mapped."""

    told: int | None = None
    mapped: Mapping[int, int] = field(default_factory=dict)


def port_plan(
    container: Mapping[str, Any], image: ImageCommand | None, *, lowest_port: int, translated: bool = False
) -> PortPlan:
    """The plan for one container.

    Args:
        image: what its image stands for; a container with a command of its own binds what it wants.
        lowest_port: the lowest port that its user may bind.
        translated: whether lower ones are translated in its calls: it may name any, and those that it declares are
            mapped.
    """
    declared = [entry["containerPort"] for entry in container.get("ports") or []]
    low = {port: MAPPED_FROM + port for port in declared if translated and port < lowest_port}
    says_itself = any(entry["name"] == "PORT" for entry in container.get("env") or [])
    if image is None or image.default_port is None or container.get("command") or says_itself:
        return PortPlan(mapped=low)
    port = declared[0] if declared else image.default_port
    if port >= lowest_port:
        return PortPlan(port, low)
    if translated:
        return PortPlan(port, {**low, port: MAPPED_FROM + port})
    return PortPlan(MAPPED_FROM + port, {port: MAPPED_FROM + port})


def named_ports(container: Mapping[str, Any]) -> dict[str, int]:
    """The container's ports that have a name."""
    return {entry["name"]: entry["containerPort"] for entry in container.get("ports") or [] if entry.get("name")}


def mapped_ports(plans: Iterable[PortPlan]) -> dict[int, int]:
    """The ports of all containers of a pod that are mapped."""
    return {port: real for plan in plans for port, real in plan.mapped.items()}
