"""The record of Endpoints (core/v1), which upstream has deprecated in favour of EndpointSlices.

Source: the API reference of core/v1; recorded answers of kube-apiserver.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.kinds.networking import endpoints_validation
from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_SHOWN = 3
_DEPRECATION = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def fill(endpoints: Object) -> None:
    """API defaults, in place: a port speaks TCP."""
    for subset in endpoints.get("subsets") or []:
        for port in subset.get("ports") or []:
            port["protocol"] = port.get("protocol") or "TCP"


def _row(endpoints: Object, now_ns: int) -> list[Any]:
    shown = _shown(endpoints)
    return [endpoints["metadata"].get("name", ""), shown, printing.created_age(endpoints, now_ns)]


def _shown(endpoints: Object) -> str:
    """Ready addresses, at most three; nothing where none is ready."""
    subsets = endpoints.get("subsets") or []
    listed = [text for subset in subsets for text in _addresses(subset)]
    if listed:
        return printing.cut_short(listed, _SHOWN)
    return "" if subsets else printing.NONE


def _addresses(subset: Object) -> Iterator[str]:
    """Every ready address on every port: `IP:PORT`, or the bare IP where there is no port."""
    ips = [address.get("ip", "") for address in subset.get("addresses") or []]
    ports = subset.get("ports") or []
    if not ports:
        yield from ips
    for port in ports:
        yield from (f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips)


RESOURCE = Resource(
    group="",
    plural="endpoints",
    singular="endpoints",
    kind="Endpoints",
    versions=(Version("v1", "core/v1.Endpoints", default=fill, deprecation=_DEPRECATION),),
    storage_version="v1",
    short_names=("ep",),
    strategy=Strategy(
        validate=endpoints_validation.faults,
        warnings=endpoints_validation.warnings,
        allows_create_on_update=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the endpoints: that of their Service."),
            Column("Endpoints", description="Ready addresses and their ports."),
            Column("Age", description="Time since the endpoints were created."),
        ),
        row=_row,
    ),
)
