"""Computes from annotations and ports of a pod whether to scrape it, and at which URL; called by `scraper`. Pure.

A pod is scraped when it is annotated `prometheus.io/scrape: "true"`, or when one of its containers has a port named
`metrics` and the annotation is absent. With `prometheus.io/port: "8080"` as well, the URL is
`http://ADDRESS:8080/metrics`. A new annotation: a field of `ScrapeTarget`, and a function that parses it.

Source: the example configuration of Prometheus for Kubernetes (documentation), which made these annotations usual.
Differs: without `prometheus.io/port` the port named `metrics` counts, then the first one; others are not scraped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from yarl import URL

from podscaler.controlplane.metrics.resource import simulated

SCRAPE: Final = "prometheus.io/scrape"
PORT: Final = "prometheus.io/port"
PATH: Final = "prometheus.io/path"
SCHEME: Final = "prometheus.io/scheme"

PORT_NAME: Final = "metrics"
PORT_MAX: Final = 65_535
PATH_DEFAULT: Final = "/metrics"
PATH_MAX_CHARACTERS: Final = 1024
SCHEMES: Final = ("http", "https")


class TargetError(ValueError):
    """The annotations of a pod that is to be scraped are invalid; str() names the annotation and the valid values."""


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """Where the metrics of a pod are.

    Attributes:
        scheme: `http` or `https`.
        port: the containerPort; the process may listen at another port (`scraper.Locate`).
        path: begins with a slash, not percent-encoded; `url` encodes it.
    """

    scheme: str
    port: int
    path: str

    def url(self, host: str, port: int) -> URL:
        """The URL at the address of the pod.

        Args:
            host: an address of this machine, which the node gave to the pod.
            port: the port at which the process listens that declares `self.port`.
        """
        return URL.build(scheme=self.scheme, host=host, port=port, path=self.path)


def target_of(pod: Mapping[str, Any]) -> ScrapeTarget | None:
    """Where to scrape a core/v1 Pod; None if it is not to be scraped, or is simulated. Raises TargetError."""
    if simulated.is_simulated(pod):
        return None
    annotations = pod["metadata"].get("annotations") or {}
    scrape = annotations.get(SCRAPE, "").lower()
    ports = list(_tcp_ports(pod["spec"]))
    metrics_port = next((number for name, number in ports if name == PORT_NAME), None)
    if scrape == "true" or (not scrape and metrics_port is not None):
        return ScrapeTarget(
            _annotated_scheme(annotations),
            _port_to_scrape(annotations, ports, metrics_port),
            _annotated_path(annotations),
        )
    return None


def _tcp_ports(spec: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """Name (or an empty text) and number of the TCP ports in a pod's spec: of regular containers, then of sidecars."""
    init_containers = spec.get("initContainers") or []
    sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or []), *sidecars):
        for port in container.get("ports") or []:
            if port.get("protocol", "TCP") == "TCP":
                yield port.get("name", ""), port["containerPort"]


def _port_to_scrape(annotations: Mapping[str, str], ports: list[tuple[str, int]], metrics_port: int | None) -> int:
    """The annotated port, else `metrics_port` (None: no port is named so), else the first one. Raises TargetError."""
    port_text = annotations.get(PORT)
    if port_text is None:
        port = metrics_port if metrics_port is not None else next((number for _, number in ports), None)
        if port is None:
            raise TargetError(f"no container states a port, and there is no annotation {PORT}")
        return port
    is_number = port_text.isascii() and port_text.isdigit() and len(port_text) <= len(str(PORT_MAX))
    if not (is_number and 0 < int(port_text) <= PORT_MAX):
        raise TargetError(f"annotation {PORT}: must be a number from 1 to {PORT_MAX}")
    return int(port_text)


def _annotated_path(annotations: Mapping[str, str]) -> str:
    """The annotated path, with a slash at its beginning. Raises TargetError if it is too long."""
    path = annotations.get(PATH, PATH_DEFAULT) or PATH_DEFAULT
    if len(path) > PATH_MAX_CHARACTERS:
        raise TargetError(f"annotation {PATH}: must not have more than {PATH_MAX_CHARACTERS} characters")
    return path if path.startswith("/") else f"/{path}"


def _annotated_scheme(annotations: Mapping[str, str]) -> str:
    """The annotated scheme, `http` without one. Raises TargetError for another one than `http` and `https`."""
    scheme = annotations.get(SCHEME, SCHEMES[0]).lower() or SCHEMES[0]
    if scheme not in SCHEMES:
        raise TargetError(f"annotation {SCHEME}: must be http or https")
    return scheme
