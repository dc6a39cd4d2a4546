"""Which pods are scraped, and where: from annotations and ports, as scrape configurations for Kubernetes read them.

A pod is scraped when it is annotated `prometheus.io/scrape: "true"`, or when one of its containers has a port named
`metrics` and the annotation is not there. Pure.

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
    """A pod wants to be scraped and does not say how; str() names the annotation."""


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """Where the metrics of a pod are.

    Attributes:
        port: as the manifest calls it.
        path: begins with a slash; it is escaped where the URL is built.
    """

    scheme: str
    port: int
    path: str

    def url(self, host: str, port: int) -> URL:
        """The URL at the address of the pod.

        Args:
            host: an address of this machine, which the node gave to the pod.
            port: where `self.port` really is.
        """
        return URL.build(scheme=self.scheme, host=host, port=port, path=self.path)


def target_of(pod: Mapping[str, Any]) -> ScrapeTarget | None:
    """Where to scrape a core/v1 Pod; None where it is not to be, or has no process. Raises TargetError."""
    if simulated.is_simulated(pod):
        return None
    annotations = pod["metadata"].get("annotations") or {}
    wanted = annotations.get(SCRAPE, "").lower()
    ports = list(_ports(pod["spec"]))
    named = next((number for name, number in ports if name == PORT_NAME), None)
    if wanted == "true" or (not wanted and named is not None):
        return ScrapeTarget(_scheme(annotations), _port(annotations, ports, named), _path(annotations))
    return None


def _ports(spec: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    sidecars = [each for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or []), *sidecars):
        for port in container.get("ports") or []:
            if port.get("protocol", "TCP") == "TCP":
                yield port.get("name", ""), port["containerPort"]


def _port(annotations: Mapping[str, str], ports: list[tuple[str, int]], named: int | None) -> int:
    text = annotations.get(PORT)
    if text is None:
        found = named if named is not None else next((number for _, number in ports), None)
        if found is None:
            raise TargetError(f"no container states a port, and there is no annotation {PORT}")
        return found
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= PORT_MAX and len(text) < 6):
        raise TargetError(f"annotation {PORT}: must be a number from 1 to {PORT_MAX}")
    return int(text)


def _path(annotations: Mapping[str, str]) -> str:
    path = annotations.get(PATH, PATH_DEFAULT) or PATH_DEFAULT
    if len(path) > PATH_MAX_CHARACTERS:
        raise TargetError(f"annotation {PATH}: must not have more than {PATH_MAX_CHARACTERS} characters")
    return path if path.startswith("/") else f"/{path}"


def _scheme(annotations: Mapping[str, str]) -> str:
    scheme = annotations.get(SCHEME, SCHEMES[0]).lower() or SCHEMES[0]
    if scheme not in SCHEMES:
        raise TargetError(f"annotation {SCHEME}: must be http or https")
    return scheme
