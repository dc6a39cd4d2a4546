"""`agnhost resource-consumer-controller`: splits requests for consumption into small ones to a Service of consumers.

`agnhost` runs it. It has the paths of `resource_consumer`, each with one more parameter: the size of the requests that
are sent. The Service spreads them over its pods, as each has a connection of its own.

Source: test/images/agnhost/resource-consumer-controller of Kubernetes v1.37 (paths, parameters, messages).
Differs: at most PARTS_MAX requests are sent for one, SENT_AT_ONCE at a time, each with a timeout of SENDING_S.
"""

import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser, parse_int
from podscaler.controlplane.kubelet.programs.resource_consumer import INCORRECT, NOT_GIVEN
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error, lacks_any, serve

PARTS_MAX: Final = 1000
SENT_AT_ONCE: Final = 16
SENDING_S: Final = 30.0
CLUSTER_DOMAIN: Final = "cluster.local"


@dataclass(frozen=True, slots=True)
class ConsumedResource:
    """How requests for one resource are split.

    Attributes:
        amount: the parameter with the amount.
        size: the parameter with the most that one request asks for.
        action: what a request does, as the response words it.
        done: the line of the response for a request that succeeded, with `{}` for its amount.
    """

    amount: str
    size: str
    action: str
    done: str


RESOURCES: Final = {
    "/ConsumeCPU": ConsumedResource(
        "millicores", "requestSizeMillicores", "consume {} millicores", "Consumed {} millicores"
    ),
    "/ConsumeMem": ConsumedResource("megabytes", "requestSizeMegabytes", "consume {} MB", "Consumed {} megabytes"),
    "/BumpMetric": ConsumedResource("delta", "requestSizeMetrics", "bump custom metric by {}", "Bumped metric by {}"),
}


def split(amount: int, size: int) -> list[int]:
    """The amounts of the requests: as many of `size` as fit, then the rest."""
    full, rest = divmod(max(amount, 0), size)
    return [size] * full + ([rest] if rest else [])


class ConsumerController:
    """Responds to the requests.

    Args:
        post: sends a form to a path of the consumers. Raises OSError.
    """

    def __init__(self, post: Callable[[str, dict[str, str]], None]) -> None:
        self._post = post

    def respond(self, request: WebRequest) -> WebResponse:
        """The response to a request, after the small requests were sent."""
        if request.method != "POST":
            return error("Bad request. Not a POST request", 400)
        resource = RESOURCES.get(request.path)
        if resource is None:
            return error("unknown function", 404)
        form = request.form
        named = ("metric",) if request.path == "/BumpMetric" else ()
        if lacks_any(form, ("durationSec", resource.amount, resource.size, *named)):
            return error(NOT_GIVEN, 400)
        amount, size = parse_int(form[resource.amount]), parse_int(form[resource.size])
        if parse_int(form["durationSec"]) is None or amount is None or size is None or size <= 0:
            return error(INCORRECT, 400)
        if amount // size >= PARTS_MAX:
            return error(f"more than {PARTS_MAX} requests", 400)
        kept = {name: form[name] for name in ("durationSec", *named)}
        return WebResponse(self._sent(request.path, resource, split(amount, size), kept))

    def _sent(self, path: str, resource: ConsumedResource, amounts: list[int], kept: dict[str, str]) -> str:
        """Send one request for each amount, several at once; returns the lines about them."""

        def send(amount: int) -> str:
            try:
                self._post(path, {resource.amount: str(amount), **kept})
            except OSError as failure:
                return f"Failed to connect to consumer: {failure}\n"
            return f"{resource.done.format(amount)}\n"

        with ThreadPoolExecutor(SENT_AT_ONCE) as pool:
            lines = list(pool.map(send, amounts))
        return f"RC manager: sending {len(amounts)} requests to {resource.action.format(sum(amounts))}\n" + "".join(
            lines
        )


def cluster_domain(resolv_conf: str) -> str:
    """The domain of the cluster, by the search list of a resolv.conf; CLUSTER_DOMAIN where it has none."""
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["search"]:
            for domain in words[1:]:
                if domain.startswith("svc."):
                    return domain.removeprefix("svc.")
    return CLUSTER_DOMAIN


def poster(base: str) -> Callable[[str, dict[str, str]], None]:
    """A function that posts a form to a path of the URL `base`; it raises OSError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(path: str, form: dict[str, str]) -> None:
        try:
            with opener.open(f"{base}{path}", urlencode(form).encode(), timeout=SENDING_S) as response:
                response.read()
        except urllib.error.HTTPError as failure:
            print(f"{path}: {failure.code} {failure.reason}", flush=True)
            failure.close()

    return post


def main(args: Sequence[str]) -> int:
    """Serve; returns the exit status."""
    parser = ArgumentParser(prog="resource-consumer-controller")
    parser.add_flag("port", 8080)
    parser.add_flag("consumer-port", 8080)
    parser.add_flag("consumer-service-name", "resource-consumer")
    parser.add_flag("consumer-service-namespace", "default")
    options = parser.parse_args(args)
    domain = cluster_domain(Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace"))
    host = f"{options.consumer_service_name}.{options.consumer_service_namespace}.svc.{domain}"
    return serve(ConsumerController(poster(f"http://{host}:{options.consumer_port}")).respond, options.port)
