"""The guestbook of the image agnhost: primary, replicas and frontend."""

import json
from collections.abc import Mapping
from email.message import Message

import pytest

from podscaler.controlplane.kubelet.programs.guestbook import Guestbook, register_in_time
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, error_response


class Pods:
    """Guestbooks by host, which reach each other."""

    def __init__(self) -> None:
        self.books = {name: Guestbook(self.send) for name in ("agnhost-primary", "agnhost-replica", "frontend")}
        self.books["127.0.0.1"] = self.books["agnhost-replica"]

    def send(self, host: str, path: str, parameters: Mapping[str, str]) -> str:
        """The body of a response."""
        if host not in self.books:
            raise ConnectionRefusedError(111, "refused")
        return self.books[host].respond(get(path, **parameters)).text


def get(path: str, **form: str) -> WebRequest:
    return WebRequest("GET", path, "", form, Message(), b"", ("127.9.9.9", 4321))


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Pods:
    """A primary with a text, and a replica of it."""
    monkeypatch.setenv("POD_IP", "127.0.0.1")
    monkeypatch.setenv("LISTEN_ADDRESS", "0.0.0.0")
    found = Pods()
    found.send("agnhost-primary", "/set", {"key": "old", "value": "1"})
    found.books["agnhost-replica"].register("agnhost-primary")
    return found


def test_a_replica_has_the_texts_of_its_primary(pods: Pods) -> None:
    """The texts that were set before it registered, and those set later."""
    pods.send("agnhost-primary", "/set", {"key": "new", "value": "2"})
    assert json.loads(pods.send("agnhost-replica", "/get", {})) == {"data": {"old": "1", "new": "2"}}


def test_the_frontend_writes_and_reads(pods: Pods) -> None:
    """It writes to the primary and reads from the replica."""
    requests = [{"cmd": "get"}, {"cmd": "SET", "value": "hello"}, {"cmd": "get"}]
    responses = [pods.send("frontend", "/guestbook", {"key": "a", **each}) for each in requests]
    assert responses == ['{"data":""}', '{"message":"Updated"}', '{"data":"hello"}']


@pytest.mark.parametrize(
    ("path", "form", "status", "text"),
    [
        pytest.param("/set", {}, 400, "cannot set with empty key.", id="set without key"),
        pytest.param("/guestbook", {"cmd": "set"}, 400, "cannot set with empty key.", id="frontend without key"),
        pytest.param("/guestbook", {"cmd": "x"}, 400, "unsupported cmd: 'x'", id="command"),
        pytest.param("/other", {}, 404, "404 page not found", id="path"),
    ],
)
def test_refused_requests(pods: Pods, path: str, form: dict[str, str], status: int, text: str) -> None:
    """Upstream's texts."""
    assert pods.books["frontend"].respond(get(path, **form)) == error_response(text, status)


def test_a_replica_that_is_gone(pods: Pods) -> None:
    """The primary says that the text did not reach it."""
    del pods.books["127.0.0.1"]
    response = pods.books["agnhost-primary"].respond(get("/set", key="a", value="b"))
    text = "encountered error while propagating to replica '127.0.0.1': [Errno 111] refused"
    assert response == error_response(text, 417)


def test_a_primary_that_is_not_reached(pods: Pods) -> None:
    """Registration is tried for a minute."""
    pauses_s: list[float] = []
    assert not register_in_time(Guestbook(pods.send), "nobody", sleep=pauses_s.append)
    assert sum(pauses_s) == 60
