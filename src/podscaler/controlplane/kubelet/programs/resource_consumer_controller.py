"""`agnhost resource-consumer-controller`: splits requests for consumption into small ones to a Service of consumers.

`programs.agnhost` calls `main`. It has the paths of `resource_consumer` for consumption, each with one more parameter:
the size of the requests that are sent. The Service spreads them over its pods, as each has a connection of its own.

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
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error_response, lacks_any, serve

PARTS_MAX: Final = 1000
SENT_AT_ONCE: Final = 16
SENDING_S: Final = 30.0
CLUSTER_DOMAIN: Final = "cluster.local"


@dataclass(frozen=True, slots=True)
class ConsumedResource:
    """How requests for one resource are split.

    Attributes:
        amount_parameter: the name of the parameter with the amount.
        size_parameter: the name of the parameter with the largest amount of one request.
        action: the verb and object in the first line of the response, with `{}` for the amount.
        done: the line of the response for a request that succeeded, with `{}` for its amount.
        forwarded_parameters: the names of the parameters that are sent on unchanged.
    """

    amount_parameter: str
    size_parameter: str
    action: str
    done: str
    forwarded_parameters: tuple[str, ...] = ("durationSec",)


RESOURCES_BY_PATH: Final = {
    "/ConsumeCPU": ConsumedResource(
        "millicores", "requestSizeMillicores", "consume {} millicores", "Consumed {} millicores"
    ),
    "/ConsumeMem": ConsumedResource("megabytes", "requestSizeMegabytes", "consume {} MB", "Consumed {} megabytes"),
    "/BumpMetric": ConsumedResource(
        "delta",
        "requestSizeMetrics",
        "bump custom metric by {}",
        "Bumped metric by {}",
        forwarded_parameters=("durationSec", "metric"),
    ),
}
"""A new resource: an entry here, and its path in `resource_consumer`."""


def split(amount: int, size: int) -> list[int]:
    """The amounts of the requests: as many of `size` as fit, then the remainder."""
    full_requests, remainder = divmod(max(amount, 0), size)
    return [size] * full_requests + ([remainder] if remainder else [])


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
            return error_response("Bad request. Not a POST request", 400)
        resource = RESOURCES_BY_PATH.get(request.path)
        if resource is None:
            return error_response("unknown function", 404)
        form = request.form
        if lacks_any(form, (*resource.forwarded_parameters, resource.amount_parameter, resource.size_parameter)):
            return error_response(NOT_GIVEN, 400)
        amount, size = parse_int(form[resource.amount_parameter]), parse_int(form[resource.size_parameter])
        if parse_int(form["durationSec"]) is None or amount is None or size is None or size <= 0:
            return error_response(INCORRECT, 400)
        if amount // size >= PARTS_MAX:
            return error_response(f"more than {PARTS_MAX} requests", 400)
        forwarded = {name: form[name] for name in resource.forwarded_parameters}
        return WebResponse(self._send_all(request.path, resource, split(amount, size), forwarded))

    def _send_all(self, path: str, resource: ConsumedResource, amounts: list[int], forwarded: dict[str, str]) -> str:
        """Send one request for each amount, several at once; returns the lines of the response about them.

        Args:
            forwarded: the parameters that all requests have.
        """

        def send(amount: int) -> str:
            try:
                self._post(path, {resource.amount_parameter: str(amount), **forwarded})
            except OSError as failure:
                return f"Failed to connect to consumer: {failure}\n"
            return f"{resource.done.format(amount)}\n"

        with ThreadPoolExecutor(SENT_AT_ONCE) as pool:
            lines = list(pool.map(send, amounts))
        first_line = f"RC manager: sending {len(amounts)} requests to {resource.action.format(sum(amounts))}\n"
        return first_line + "".join(lines)


def cluster_domain(resolv_conf: str) -> str:
    """The domain of the cluster, by the search list of a resolv.conf; CLUSTER_DOMAIN where it has none."""
    for line in resolv_conf.splitlines():
        keyword, *domains = line.split() or [""]
        if keyword == "search":
            for domain in domains:
                if domain.startswith("svc."):
                    return domain.removeprefix("svc.")
    return CLUSTER_DOMAIN


def form_poster(base_url: str) -> Callable[[str, dict[str, str]], None]:
    """A function that posts a form to a path below `base_url`; it prints an error status, and raises other OSErrors."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(path: str, form: dict[str, str]) -> None:
        try:
            with opener.open(f"{base_url}{path}", urlencode(form).encode(), timeout=SENDING_S) as response:
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
    controller = ConsumerController(form_poster(f"http://{host}:{options.consumer_port}"))
    return serve(controller.respond, options.port)
