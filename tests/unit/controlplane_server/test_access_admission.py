"""What pods get for their service account when they are created."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.controlplane.admission import account_admission
from podscaler.controlplane.admission.account_admission import MOUNT_PATH

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server whose pods get tokens, with two accounts."""
    async with running_server(tmp_path) as running:
        account_admission.register(running.objects, Random(1))
        await running.create(ACCOUNTS, {"metadata": {"name": "bot"}, "imagePullSecrets": [{"name": "s"}]})
        await running.create(ACCOUNTS, {"metadata": {"name": "mute"}, "automountServiceAccountToken": False})
        yield running


def pod(**spec: Any) -> Any:
    """A pod with one container."""
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_every_pod_gets_a_token(server: Running) -> None:
    """A pod that says nothing runs as `default` and finds token, CA and namespace."""
    spec = (await server.create(PODS, pod()))["spec"]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    ]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


@pytest.mark.parametrize(
    ("spec", "is_mounted"),
    [
        pytest.param({"serviceAccountName": "bot"}, True, id="an account"),
        pytest.param({"serviceAccountName": "mute"}, False, id="an account without"),
        pytest.param({"serviceAccountName": "mute", "automountServiceAccountToken": True}, True, id="the pod wants it"),
        pytest.param({"automountServiceAccountToken": False}, False, id="the pod does not want it"),
    ],
)
async def test_who_gets_none(server: Running, spec: Any, is_mounted: bool) -> None:
    """The pod's word counts, then the account's."""
    created = await server.create(PODS, pod(**spec))
    assert bool(created["spec"].get("volumes")) == is_mounted


async def test_what_the_account_gives(server: Running) -> None:
    """Pull secrets come from the account, unless the pod has its own."""
    created = await server.create(PODS, pod(serviceAccountName="bot"))
    assert created["spec"]["imagePullSecrets"] == [{"name": "s"}]


async def test_an_account_that_is_not_there(server: Running) -> None:
    """A pod of an account that does not exist is refused."""
    reply = await server.request("POST", PODS, json=pod(serviceAccountName="nobody"))
    assert (reply.status, reply.body["message"]) == (
        403,
        'pods "p" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found',
    )


async def test_a_container_with_its_own_mount(server: Running) -> None:
    """A container that mounts something else there keeps it, and the pod gets no volume."""
    mount = {"name": "mine", "mountPath": MOUNT_PATH}
    spec = {"containers": [{"name": "c", "image": "i", "volumeMounts": [mount]}]}
    created = await server.create(PODS, pod(**spec, volumes=[{"name": "mine", "emptyDir": {}}]))
    assert [volume["name"] for volume in created["spec"]["volumes"]] == ["mine"]


async def test_a_copy_of_a_pod(server: Running) -> None:
    """A pod made from another's spec uses the volume that it brings along."""
    first = await server.create(PODS, pod())
    again = {"metadata": {"name": "q"}, "spec": {**first["spec"], "nodeName": ""}}
    second = await server.create(PODS, again)
    assert second["spec"]["volumes"] == first["spec"]["volumes"]
