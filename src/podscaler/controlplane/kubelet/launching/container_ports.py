"""The ports of a container: named ports, and the ports that replace low ones that may not be bound.

`kubelet.pods.container_setup` calls `port_plan`, and sets the environment variable PORT of built-in images by it;
`kubelet.containers.container_run` uses `named_ports` for probes. `kubelet.pods.pod_worker` writes the pod's port map
(`podscaler.api.port_map`), which the Service proxy reads, from `mapped_ports`. Pure. Which ports are mapped is decided
in `port_plan` alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podscaler.controlplane.kubelet.launching.images import ImageCommand

PORT_OFFSET: Final = 20_000
"""A low port N is mapped to 20000+N; pods do not conflict there, as each has an address of its own.

`port_translation` adds it to the ports in system calls.
"""


@dataclass(frozen=True, slots=True)
class PortPlan:
    """The ports of a container.

    Attributes:
        port_variable: the value of PORT for a built-in image, None for no such variable.
        mapped: declared port -> the port that is bound in its place.
    """

    port_variable: int | None = None
    mapped: Mapping[int, int] = field(default_factory=dict)


def port_plan(
    container: Mapping[str, Any], image: ImageCommand | None, *, lowest_port: int, translated: bool = False
) -> PortPlan:
    """The ports of one container.

    Args:
        container: a core/v1 Container.
        image: the command of its image, None for an unknown one. A container with a command, or a PORT in its `env`, of
            its own gets no PORT.
        lowest_port: the lowest port that its user may bind.
        translated: whether lower ports are translated in its system calls: the program may bind them as it declares
            them then, and gets the mapped ones. Otherwise only the PORT of a built-in image can be mapped.
    """
    declared = [container_port["containerPort"] for container_port in container.get("ports") or []]
    mapped = {port: PORT_OFFSET + port for port in declared if translated and port < lowest_port}
    sets_port = any(env_var["name"] == "PORT" for env_var in container.get("env") or [])
    if image is None or image.default_port is None or container.get("command") or sets_port:
        return PortPlan(mapped=mapped)
    port = declared[0] if declared else image.default_port
    if port >= lowest_port:
        return PortPlan(port, mapped)
    bound_port = PORT_OFFSET + port
    if translated:
        return PortPlan(port, {**mapped, port: bound_port})
    return PortPlan(bound_port, {port: bound_port})  # PORT lets the program bind a port that it may bind


def named_ports(container: Mapping[str, Any]) -> dict[str, int]:
    """The named ports of a core/v1 Container: name -> containerPort."""
    container_ports = container.get("ports") or []
    return {port["name"]: port["containerPort"] for port in container_ports if port.get("name")}


def mapped_ports(plans: Iterable[PortPlan]) -> dict[int, int]:
    """The mapped ports of all containers of a pod: declared port -> bound port."""
    return {port: bound_port for plan in plans for port, bound_port in plan.mapped.items()}
