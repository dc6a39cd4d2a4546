"""Tokens of service accounts: what they say, what ends them, and how they are asked for."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.controlplane.auth.account_tokens import EXTENDED_LIFETIME_S, AccountTokens
from podscaler.controlplane.credentials import signing_key

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
AUDIENCE = "https://kubernetes.default.svc.cluster.local"
INVALIDATED = {"user": {}, "error": "[invalid bearer token, service account token has been invalidated]"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the service account `bot` and a pod of it."""
    async with running_server(tmp_path) as running:
        await running.create(ACCOUNTS, {"metadata": {"name": "bot"}})
        spec = {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]}
        await running.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        yield running


async def token_of(server: Running, **spec: Any) -> str:
    """A token of `bot`."""
    reply = await server.request("POST", f"{ACCOUNTS}/bot/token", json={"spec": spec})
    assert reply.status == 201, reply.body
    token: str = reply.body["status"]["token"]
    return token


async def review(server: Running, token: str, *audiences: str) -> Any:
    """What the server says of a token."""
    spec = {"token": token, "audiences": list(audiences)}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    return (await server.request("POST", path, json={"spec": spec})).body["status"]


def claims_of(token: str) -> Any:
    """What a token says."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def test_a_token_is_its_account(server: Running) -> None:
    """Who shows a token is the service account, with its groups and its uid."""
    uid = (await server.get(f"{ACCOUNTS}/bot")).body["metadata"]["uid"]
    token = await token_of(server)
    answer = await review(server, token)
    assert answer == {
        "authenticated": True,
        "user": {
            "username": "system:serviceaccount:default:bot",
            "uid": uid,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]},
        },
        "audiences": [AUDIENCE],
    }


async def test_the_answer_to_a_request(server: Running) -> None:
    """A TokenRequest is answered with its defaults, and with when the token expires."""
    reply = await server.request("POST", f"{ACCOUNTS}/bot/token", json={})
    body = reply.body
    now_s = server.clock.now_ns() // NANOSECONDS
    token = body["status"].pop("token")
    claims = claims_of(token)
    assert (reply.status, body["spec"]) == (
        201,
        {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None},
    )
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("bot", "default")
    assert (claims["iat"], claims["exp"], claims["sub"]) == (now_s, now_s + 3600, "system:serviceaccount:default:bot")


async def test_a_token_expires(server: Running) -> None:
    """A token is good up to its last second and not a moment longer."""
    token = await token_of(server, expirationSeconds=600)
    await server.clock.advance(599)
    good = (await review(server, token))["authenticated"]
    await server.clock.advance(1)
    assert (good, await review(server, token)) == (
        True,
        {"user": {}, "error": "[invalid bearer token, service account token has expired]"},
    )


async def test_a_token_dies_with_its_account(server: Running) -> None:
    """Deleting the account ends its tokens; another account of the same name does not bring them back."""
    token = await token_of(server)
    await server.request("DELETE", f"{ACCOUNTS}/bot")
    gone = await review(server, token)
    await server.create(ACCOUNTS, {"metadata": {"name": "bot"}})
    assert (gone, await review(server, token)) == (INVALIDATED, INVALIDATED)


async def test_a_token_dies_with_its_pod(server: Running) -> None:
    """A token bound to a pod names it, and ends with it."""
    uid = (await server.get(f"{PODS}/p")).body["metadata"]["uid"]
    token = await token_of(server, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid})
    extra = (await review(server, token))["user"]["extra"]
    await server.request("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert (extra["authentication.kubernetes.io/pod-name"], extra["authentication.kubernetes.io/pod-uid"]) == (
        ["p"],
        [uid],
    )
    assert await review(server, token) == INVALIDATED


async def test_a_pods_own_token_is_good_for_long(server: Running) -> None:
    """What every pod gets says 3607 seconds, and is accepted for a year: not everyone reads it anew."""
    token = await token_of(
        server, expirationSeconds=3607, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"}
    )
    claims = claims_of(token)
    assert claims["exp"] - claims["iat"] == EXTENDED_LIFETIME_S
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


async def test_audiences(server: Running) -> None:
    """A token for somebody else opens nothing here; a review for that audience knows it."""
    token = await token_of(server, audiences=["vault"])
    here = await server.get(PODS, headers={"Authorization": f"Bearer {token}"})
    there = await review(server, token, "vault", "other")
    assert (here.status, there["authenticated"], there["audiences"]) == (401, True, ["vault"])
    assert (await review(server, token))["error"] == (
        f'token audiences ["vault"] is invalid for the target audiences ["{AUDIENCE}"]'
    )


async def test_a_changed_token_is_nobodys(server: Running) -> None:
    """Whoever changes a claim, or signs with another key, is nobody."""
    head, body, signature = (await token_of(server)).split(".")
    changed = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed["sub"] = "system:serviceaccount:kube-system:admin"
    forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
    other = AccountTokens(signing_key.generate(), server.objects.find, server.clock)
    pod = {"metadata": {"namespace": "default", "name": "p", "uid": "u"}, "spec": {"serviceAccountName": "bot"}}
    for token in (f"{head}.{forged}.{signature}", other.issue_for_pod(pod, "", 600), f"{head}.{body}.", "a.b.c"):
        assert await review(server, token) == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize(
    ("name", "body", "status", "message"),
    [
        pytest.param("nobody", {}, 404, 'serviceaccounts "nobody" not found', id="no such account"),
        pytest.param(
            "bot",
            {"spec": {"expirationSeconds": 599}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
            "may not specify a duration less than 10 minutes",
            id="too short",
        ),
        pytest.param(
            "bot",
            {"spec": {"expirationSeconds": 2**32 + 1}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: '
            "may not specify a duration larger than 2^32 seconds",
            id="too long",
        ),
        pytest.param(
            "bot",
            {"metadata": {"name": "other"}},
            422,
            'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "other": '
            "must match the service account name if specified",
            id="another name",
        ),
        pytest.param(
            "bot",
            {"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
            id="bound to what it cannot be",
        ),
        pytest.param(
            "bot",
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "q"}}},
            404,
            'pods "q" not found',
            id="bound to nothing",
        ),
        pytest.param(
            "bot",
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x"}}},
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (x) does not match '
            "the UID in record. The object might have been deleted and then recreated",
            id="bound to a former pod",
        ),
    ],
)
async def test_invalid_requests(server: Running, name: str, body: Any, status: int, message: str) -> None:
    """What is wrong with a TokenRequest is told in upstream's words."""
    reply = await server.request("POST", f"{ACCOUNTS}/{name}/token", json=body)
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_a_pod_of_another_account(server: Running) -> None:
    """A token cannot be bound to a pod that runs as somebody else."""
    await server.create(ACCOUNTS, {"metadata": {"name": "other"}})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    reply = await server.request("POST", f"{ACCOUNTS}/other/token", json={"spec": {"boundObjectRef": bound}})
    assert (reply.status, reply.body["message"]) == (
        400,
        'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
    )


async def test_keys_for_everyone_else(server: Running) -> None:
    """Who is not the API server finds the keys by OpenID Connect discovery."""
    found = (await server.get("/.well-known/openid-configuration")).body
    keys = await server.get("/openid/v1/jwks")
    assert (found["issuer"], found["id_token_signing_alg_values_supported"]) == (AUDIENCE, ["ES256"])
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert [key["crv"] for key in json.loads(keys.body)["keys"]] == ["P-256"]


def test_the_key_is_kept(tmp_path: Path) -> None:
    """The key is made once, for its owner only; a file that holds something else is told."""
    path = tmp_path / "service-account.key"
    made, again = signing_key.ensure(path), signing_key.ensure(path)
    assert (made.public_jwk, path.stat().st_mode & 0o777) == (again.public_jwk, 0o600)
    path.write_text("no key")
    with pytest.raises(UsageError, match="holds no key: remove it to have a new one made"):
        signing_key.ensure(path)
