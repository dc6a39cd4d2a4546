"""Resource metrics (cpu, memory, ...) of pods, from metrics.k8s.io.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 7.1 (Resource metrics).
"""

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import PodMetricsList
from podscaler.kube.client import typed_responses, urls
from podscaler.kube.client.client import Client

GROUP = "metrics.k8s.io"
VERSION = "v1beta1"
_LIST = msgspec.json.Decoder(PodMetricsList)


async def resource_metrics(client: Client, namespace: str, selector: Selector) -> PodMetricsList:
    """Usage of the containers of the namespace's pods that `selector` picks. Raises StatusError."""
    answer = await client.fetch(
        urls.group_version(GROUP, VERSION) + urls.path("namespaces", namespace, "pods"),
        subject=f"pods.{GROUP}",
        query=[("labelSelector", str(selector))],
    )
    return typed_responses.typed(answer, _LIST)
