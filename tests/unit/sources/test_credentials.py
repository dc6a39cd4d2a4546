"""Credentials: only from Secrets that allow it, and never in a text."""

import base64
from typing import Any

import pytest

from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.sources import credentials
from podscaler.sources.metric_source import CredentialReference, SecretKeyRef
from podscaler.sources.protocol import CredentialsUnavailable
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer

PATH = "/api/v1/namespaces/shop/secrets/login"
LABELED = {"labels": {"podscaler.dev/metric-source": "true"}}
SENTINEL = "pa/ss wörd@1%"


def encoded(text: str) -> str:
    """As a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def reference(name: str, key: str, secret: str = "login") -> CredentialReference:
    """The credential `name` from a key of a Secret."""
    return CredentialReference(name, SecretKeyRef(secret, key))


async def read(answer: Any, *references: CredentialReference) -> tuple[dict[str, str], ScriptedTransport]:
    """The credentials that a Secret with this content gives, and the requests."""
    transport = ScriptedTransport()
    transport.on("GET", PATH, answer if isinstance(answer, Response) else json_answer(answer))
    client = Client(transport, VirtualClock())
    return await credentials.read(client, "shop", references), transport


async def test_one_request_for_each_secret() -> None:
    """Two keys of a Secret are read at once."""
    secret = {"metadata": LABELED, "data": {"user": encoded("me"), "password": encoded(SENTINEL)}}
    found, transport = await read(secret, reference("username", "user"), reference("password", "password"))
    assert found == {"username": "me", "password": SENTINEL}
    assert transport.asked() == [PATH]


async def test_without_references_nothing_is_requested() -> None:
    """A source without credentials needs no permission."""
    found, transport = await read({})
    assert (found, transport.asked()) == ({}, [])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            {"metadata": {}, "data": {"password": encoded(SENTINEL)}},
            'the Secret login lacks the label podscaler.dev/metric-source: "true", without which no MetricSource may '
            "use it",
            id="without the label",
        ),
        pytest.param(
            {"metadata": {"labels": {"podscaler.dev/metric-source": "false"}}, "data": {"password": encoded(SENTINEL)}},
            'the Secret login lacks the label podscaler.dev/metric-source: "true", without which no MetricSource may '
            "use it",
            id="with another value of the label",
        ),
        pytest.param({"metadata": LABELED}, "the Secret login has no key password", id="without the key"),
        pytest.param(
            {"metadata": LABELED, "data": {"password": "/w=="}},
            "the key password of the Secret login is no text in UTF-8",
            id="binary",
        ),
        pytest.param(
            Response(200, {"content-type": "application/json"}, b"[]"),
            "the Secret login cannot be decoded",
            id="no Secret",
        ),
        pytest.param(
            Response(200, {"content-type": "application/json"}, b'{"data": {"password": "\xff"}}'),
            "the Secret login cannot be decoded",
            id="not UTF-8",
        ),
        pytest.param(
            json_answer({"kind": "Status", "status": "Failure", "message": "forbidden!", "code": 403}, 403),
            "the Secret login cannot be read: forbidden!",
            id="forbidden",
        ),
    ],
)
async def test_secrets_that_cannot_be_used(answer: Any, text: str) -> None:
    """The reason names Secret and key, and no value."""
    with pytest.raises(CredentialsUnavailable) as caught:
        await read(answer, reference("password", "password"))
    assert str(caught.value) == text


async def test_the_name_of_a_secret_is_no_path() -> None:
    """Another object cannot be reached by it."""
    with pytest.raises(CredentialsUnavailable, match=r"invalid resource name"):
        await read({}, reference("password", "password", "../configmaps/login"))


@pytest.mark.parametrize(
    "text",
    [
        f"login with {SENTINEL} failed",
        "amqp://me:pa%2Fss%20w%C3%B6rd%401%25@rabbit refused",
        "amqp://me:pa/ss%20w%C3%B6rd%401%25@rabbit refused",
        "password=pa%2Fss+w%C3%B6rd%401%25",
        '{"password": "pa/ss w\\u00f6rd@1%"}',
        f"Authorization: {encoded(SENTINEL)}",
    ],
    ids=["plain", "in a URL", "with a slash", "in a form", "in JSON", "in base64"],
)
def test_no_form_of_a_credential_is_left(text: str) -> None:
    """Nothing of the password is in the text."""
    shown = credentials.redacted(text, [SENTINEL])
    assert not any(part in shown for part in ("ss w", "ss%20", "ss+", encoded(SENTINEL)))
    assert credentials.HIDDEN in shown


def test_user_information_of_any_url_is_hidden() -> None:
    """Also of one that is no credential of the source."""
    assert credentials.redacted("GET redis://a:b@host/0\nfailed", []) == "GET redis://***@host/0 failed"


def test_long_texts_are_cut() -> None:
    """A condition and an event have a bound."""
    assert credentials.redacted("x" * 1000, []) == "x" * 300 + "..."
