"""Secrets that keep a token of a service account."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.controlplane.controllers.cluster.token_secrets import TokenSecrets
from podscaler.controlplane.registry.registry import Registry

SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
KEY = ("default", "s")
SECRET: Any = {
    "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "bot"}},
    "type": "kubernetes.io/service-account-token",
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the service account `bot`."""
    async with running_server(tmp_path) as running:
        await running.create(ACCOUNTS, {"metadata": {"name": "bot"}})
        yield running


def controller(server: Running) -> TokenSecrets:
    """The controller, with the server's own tokens."""
    accounts = server.accounts
    return TokenSecrets(Registry(server.objects), accounts.issue_for_secret, ca_certificate="CA")


async def test_a_secret_is_filled(server: Running) -> None:
    """Token, authority and namespace are put into it, once; the token is the account's and ends with the Secret."""
    await server.create(SECRETS, SECRET)
    await controller(server).sync(KEY)
    filled = (await server.get(f"{SECRETS}/s")).body
    await controller(server).sync(KEY)
    assert (await server.get(f"{SECRETS}/s")).body == filled
    data = {name: base64.b64decode(value).decode() for name, value in filled["data"].items()}
    assert (data["ca.crt"], data["namespace"]) == ("CA", "default")
    headers = {"Authorization": f"Bearer {data['token']}"}
    statuses = [(await server.get(f"{SECRETS}/s", headers=headers)).status]
    await server.request("DELETE", f"{SECRETS}/s")
    statuses.append((await server.get(f"{SECRETS}/s", headers=headers)).status)
    assert statuses == [403, 401]


async def test_a_secret_goes_with_its_account(server: Running) -> None:
    """Without its account, or with another of the same name, the Secret is removed."""
    await server.create(SECRETS, SECRET)
    await controller(server).sync(KEY)
    await server.request("DELETE", f"{ACCOUNTS}/bot")
    await server.create(ACCOUNTS, {"metadata": {"name": "bot"}})
    await controller(server).sync(KEY)
    assert (await server.get(f"{SECRETS}/s")).status == 404


async def test_a_secret_of_nobody(server: Running) -> None:
    """Such a Secret must name its account."""
    reply = await server.request("POST", SECRETS, json={**SECRET, "metadata": {"name": "s"}})
    assert reply.body["message"] == (
        'Secret "s" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value'
    )
