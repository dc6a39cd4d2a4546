"""The environment variables with the addresses and ports of the Services of a namespace.

`container_setup` calls it at each start of a container. Pure.
For a Service `redis-primary` at 127.7.224.9 with port 6379 named `tcp-redis`:

    REDIS_PRIMARY_SERVICE_HOST=127.7.224.9
    REDIS_PRIMARY_SERVICE_PORT=6379              REDIS_PRIMARY_SERVICE_PORT_TCP_REDIS=6379
    REDIS_PRIMARY_PORT=tcp://127.7.224.9:6379    REDIS_PRIMARY_PORT_6379_TCP=tcp://127.7.224.9:6379
    REDIS_PRIMARY_PORT_6379_TCP_PROTO=tcp  ..._PORT=6379  ..._ADDR=127.7.224.9

Source: Service, "Environment variables" (Kubernetes documentation).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from podscaler.api import port_map


def service_variables(services: Iterable[Mapping[str, Any]], *, namespace: str, links: bool = True) -> dict[str, str]:
    """The variables for a container in `namespace`.

    Args:
        services: all Services of the namespace and of `default`; those without a clusterIP are left out.
        links: spec.enableServiceLinks; if False, only the Service `kubernetes` of `default` has variables.
    """
    variables: dict[str, str] = {}
    for service in services:
        meta, spec = service["metadata"], service["spec"]
        is_master = meta["name"] == "kubernetes" and meta["namespace"] == "default"
        address = spec.get("clusterIP")
        if address and address != "None" and (is_master or (links and meta["namespace"] == namespace)):
            variables |= _of_service(meta["name"], address, _listening(service))
    return variables


def _listening(service: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The Service's ports, with the numbers at which the proxy listens on this machine."""
    moved = port_map.of(service)
    ports = service["spec"].get("ports") or []
    return [{**port, "port": moved.get(port["port"], port["port"])} for port in ports]


def _of_service(name: str, address: str, ports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The variables of one Service, as Docker's links had them; the first port has short names too."""
    prefix = _variable_name(name)
    variables = {f"{prefix}_SERVICE_HOST": address}
    for index, entry in enumerate(ports):
        port, protocol = str(entry["port"]), entry.get("protocol", "TCP")
        url = f"{protocol.lower()}://{_host(address)}:{port}"
        if index == 0:
            variables |= {f"{prefix}_SERVICE_PORT": port, f"{prefix}_PORT": url}
        if entry.get("name"):
            variables[f"{prefix}_SERVICE_PORT_{_variable_name(entry['name'])}"] = port
        linked = f"{prefix}_PORT_{port}_{protocol}"
        variables |= {
            linked: url,
            f"{linked}_PROTO": protocol.lower(),
            f"{linked}_PORT": port,
            f"{linked}_ADDR": address,
        }
    return variables


def _variable_name(text: str) -> str:
    return text.upper().replace("-", "_")


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
