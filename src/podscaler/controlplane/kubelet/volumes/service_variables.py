"""The environment variables with the addresses and ports of the Services of a namespace.

`kubelet.pods.container_setup` calls `service_variables` at each start of a container. Pure. A new variable:
`_variables_of`. For a Service `redis-primary` at 127.7.224.9 with port 6379 named `tcp-redis`:

    REDIS_PRIMARY_SERVICE_HOST=127.7.224.9
    REDIS_PRIMARY_SERVICE_PORT=6379              REDIS_PRIMARY_SERVICE_PORT_TCP_REDIS=6379
    REDIS_PRIMARY_PORT=tcp://127.7.224.9:6379    REDIS_PRIMARY_PORT_6379_TCP=tcp://127.7.224.9:6379
    REDIS_PRIMARY_PORT_6379_TCP_PROTO=tcp  ..._PORT=6379  ..._ADDR=127.7.224.9

Source: Service, "Environment variables" (Kubernetes documentation).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from podscaler.api import port_map


def service_variables(
    services: Iterable[Mapping[str, Any]], *, namespace: str, enable_service_links: bool = True
) -> dict[str, str]:
    """The variables for a container in `namespace`.

    Args:
        services: Services; those with a clusterIP in the namespace, and `kubernetes` of `default`, have variables.
        enable_service_links: that of the pod; if False, only the Service `kubernetes` of `default` has variables.
    """
    variables: dict[str, str] = {}
    for service in services:
        meta, spec = service["metadata"], service["spec"]
        is_kubernetes = meta["name"] == "kubernetes" and meta["namespace"] == "default"
        address = spec.get("clusterIP")
        is_visible = is_kubernetes or (enable_service_links and meta["namespace"] == namespace)
        if is_visible and address and address != "None":
            variables |= _variables_of(meta["name"], address, _proxy_ports(service))
    return variables


def _proxy_ports(service: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The core/v1 ServicePorts of a Service, with the numbers at which the proxy listens on this machine."""
    proxy_ports = port_map.of(service)
    service_ports = service["spec"].get("ports") or []
    return [{**port, "port": proxy_ports.get(port["port"], port["port"])} for port in service_ports]


def _variables_of(name: str, address: str, service_ports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The variables of one Service, as Docker's links had them; the first port has short names too.

    Args:
        address: the clusterIP.
        service_ports: the result of `_proxy_ports`.
    """
    prefix = _variable_name(name)
    variables = {f"{prefix}_SERVICE_HOST": address}
    for index, service_port in enumerate(service_ports):
        port, protocol = str(service_port["port"]), service_port.get("protocol", "TCP")
        url = f"{protocol.lower()}://{_url_host(address)}:{port}"
        if index == 0:
            variables |= {f"{prefix}_SERVICE_PORT": port, f"{prefix}_PORT": url}
        if service_port.get("name"):
            variables[f"{prefix}_SERVICE_PORT_{_variable_name(service_port['name'])}"] = port
        link_name = f"{prefix}_PORT_{port}_{protocol}"
        variables |= {
            link_name: url,
            f"{link_name}_PROTO": protocol.lower(),
            f"{link_name}_PORT": port,
            f"{link_name}_ADDR": address,
        }
    return variables


def _variable_name(name: str) -> str:
    """The name of a Service or port as a part of a variable's name: `redis-primary` -> `REDIS_PRIMARY`."""
    return name.upper().replace("-", "_")


def _url_host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
