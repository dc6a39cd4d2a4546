"""The check at the start: one sentence for each thing that cannot heal."""

from typing import Any

import msgspec
import pytest

from podscaler.controller import permissions
from podscaler.errors import UsageError
from podscaler.kube.client import Client
from podscaler.kube.transport import Answer, Request
from podscaler.testing import VirtualClock
from podscaler.testing.transport import Failure, ScriptedTransport, json_answer

LIST = "/apis/autoscaling/v2/horizontalpodautoscalers"
SERVER = "the API server https://10.0.0.1:443"


def _review(*denied: str) -> Any:
    def answer(request: Request) -> Answer:
        attributes = msgspec.json.decode(request.body or b"")["spec"]["resourceAttributes"]
        asked = " ".join(filter(None, (attributes["verb"], attributes["resource"], attributes["subresource"])))
        return json_answer({"status": {"allowed": asked not in denied}}, 201)

    return answer


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server that allows everything."""
    made = ScriptedTransport()
    made.on("GET", LIST, json_answer({"items": []}))
    made.on("POST", permissions.REVIEWS, _review())
    return made


async def _check(transport: ScriptedTransport) -> None:
    await permissions.check(Client(transport, VirtualClock()), 'context "main" of F')


async def test_all_is_well(transport: ScriptedTransport) -> None:
    """A server that answers and allows is fine; so is one that cannot tell what it allows."""
    await _check(transport)
    transport.on("POST", permissions.REVIEWS, Answer(404, {}, b""))
    await _check(transport)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            Failure("dial tcp 10.0.0.1:443: connect: connection refused"),
            'cannot reach the API server https://10.0.0.1:443 (context "main" of F): '
            "dial tcp 10.0.0.1:443: connect: connection refused",
        ),
        (
            Answer(401, {}, b""),
            f'{SERVER} does not accept the credentials of context "main" of F: the server has asked for the client to '
            "provide credentials (get horizontalpodautoscalers.autoscaling)",
        ),
        (
            Answer(403, {}, b"no"),
            f'{SERVER} does not allow the user of context "main" of F to list horizontalpodautoscalers: grant the verb '
            '"list" on "horizontalpodautoscalers" of apiGroup "autoscaling" in a ClusterRole',
        ),
        (
            Answer(404, {}, b""),
            f'{SERVER} (context "main" of F) does not serve autoscaling/v2, which needs Kubernetes 1.23 or newer',
        ),
    ],
    ids=["unreachable", "credentials", "forbidden", "too old"],
)
async def test_sentences(transport: ScriptedTransport, answer: Any, sentence: str) -> None:
    """What failed, where, and what to change."""
    transport.on("GET", LIST, answer)
    with pytest.raises(UsageError) as caught:
        await _check(transport)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("denied", "ending"),
    [
        ("watch pods", 'to watch pods: grant the verb "watch" on "pods" of apiGroup "" in a ClusterRole'),
        (
            "update horizontalpodautoscalers status",
            'to update horizontalpodautoscalers/status: grant the verb "update" on '
            '"horizontalpodautoscalers/status" of apiGroup "autoscaling" in a ClusterRole',
        ),
    ],
)
async def test_missing_permissions(transport: ScriptedTransport, denied: str, ending: str) -> None:
    """Verb, resource, and what to grant."""
    transport.on("POST", permissions.REVIEWS, _review(denied))
    with pytest.raises(UsageError) as caught:
        await _check(transport)
    assert str(caught.value).endswith(ending)
