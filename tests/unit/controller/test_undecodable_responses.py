"""Responses that are not UTF-8 are failures of requests as broken JSON is."""

import msgspec
import pytest

from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from podscaler.api.typed.recording import RecordingError
from podscaler.base.errors import StatusError
from podscaler.controller.history.history_maps import HistoryMaps
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.reconcile import status_writer
from podscaler.core.model import spec
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.simulation.fleet import splitting
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport

STATUS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status"
MAP = "/api/v1/namespaces/kube-system/configmaps/podscaler-history-03"
JSON = {"content-type": "application/json"}


def client(method: str, path: str, body: bytes) -> Client:
    """A client of a server that responds to one request."""
    transport = ScriptedTransport()
    transport.on(method, path, Response(200, JSON, body))
    return Client(transport, VirtualClock())


async def test_histories() -> None:
    """A ConfigMap cannot be read, as where its JSON is broken."""
    maps = HistoryMaps(client("GET", MAP, b'{"metadata": {"resourceVersion": "\xff"}}'))
    with pytest.raises(StatusError, match="the ConfigMap podscaler-history-03 cannot be read"):
        await maps.read("podscaler-history-03")


async def test_a_status() -> None:
    """The write succeeded; its version is not known."""
    read = {
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 5},
    }
    wire = msgspec.convert(read, HorizontalPodAutoscaler)
    autoscaler = Autoscaler(wire.metadata, wire, spec.of(wire))
    server = client("PUT", STATUS, b'{"metadata": {"resourceVersion": "\xff"}}')
    assert await status_writer.put_status(server, autoscaler, HorizontalPodAutoscalerStatus()) == ""


def test_a_line_of_a_recording() -> None:
    """It names no autoscaler."""
    with pytest.raises(RecordingError):
        splitting.key_of(b'{"deleted": "\xff"}')
