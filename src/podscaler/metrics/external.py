"""Metrics that belong to no object of the cluster, from external.metrics.k8s.io.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 7.4 (External metrics).
"""

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValueList
from podscaler.kube.client import typed_responses, urls
from podscaler.kube.client.client import Client

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
_LIST = msgspec.json.Decoder(ExternalMetricValueList)


async def external_metric(
    client: Client, namespace: str, metric: str, *, metric_selector: Selector
) -> ExternalMetricValueList:
    """The values of the metric whose labels `metric_selector` picks. Raises StatusError."""
    answer = await client.fetch(
        urls.group_version(GROUP, VERSION) + urls.path("namespaces", namespace, urls.resource(metric)),
        subject=f"{metric}.{GROUP}",
        query=[("labelSelector", str(metric_selector))],
    )
    return typed_responses.typed(answer, _LIST)
