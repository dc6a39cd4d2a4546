"""The audit log: what is written of requests, in which order, and that nothing is lost."""

import asyncio
import json
from pathlib import Path
from typing import Any

import policies
import pytest
from server_under_test import CONFIG_MAPS, VIEWER_TOKEN, config_map, running_server

from podscaler.base.errors import UsageError
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.auth import audit_log
from podscaler.controlplane.auth.audit_log import AuditLog

MASTERS = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
ALLOWED = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


async def test_what_is_written(tmp_path: Path) -> None:
    """Who, what, from where, what came of it and why; neither bodies nor tokens."""
    path = tmp_path / "audit.log"
    log = audit_log.open_log(path)
    async with running_server(tmp_path / "data", ServerParts(audit_log=log)) as server:
        await policies.create_default_policy(server.objects)
        await server.create(CONFIG_MAPS, config_map("a", key="hidden"))
        await server.get(CONFIG_MAPS, headers={"Impersonate-User": "eve"})
        await server.get("/version", headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})
        await server.get("/version", headers={"Authorization": "Bearer wrong-token"})
    await log.close()
    text = path.read_text()
    events = [json.loads(line) for line in text.splitlines()][1:]  # the first is the server's own namespace
    assert [(event["verb"], event["responseStatus"]["code"]) for event in events] == [
        ("create", 201),
        ("list", 403),
        ("get", 200),
        ("get", 401),
    ]
    assert {key: events[0][key] for key in ("user", "objectRef", "sourceIPs", "annotations", "level", "stage")} == {
        "user": MASTERS,
        "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
        "sourceIPs": ["127.0.0.1"],
        "annotations": ALLOWED,
        "level": "Metadata",
        "stage": "ResponseComplete",
    }
    assert events[1]["impersonatedUser"] == {"username": "eve", "groups": ["system:authenticated"]}
    assert events[1]["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert events[2]["annotations"]["authorization.k8s.io/reason"].startswith("RBAC: allowed by ClusterRoleBinding")
    assert "annotations" not in events[3]
    assert not any(secret in text for secret in ("hidden", "admin-token", VIEWER_TOKEN, "wrong-token"))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_watch_has_two_stages(tmp_path: Path) -> None:
    """A watch is told when it starts and when it ends, under one id."""
    log = audit_log.open_log(tmp_path / "audit.log")
    async with running_server(tmp_path / "data", ServerParts(audit_log=log)) as server:
        await server.get(f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1")
    await log.close()
    events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()][-2:]
    assert [(event["verb"], event["stage"]) for event in events] == [
        ("watch", "ResponseStarted"),
        ("watch", "ResponseComplete"),
    ]
    assert events[0]["auditID"] == events[1]["auditID"]


async def test_a_slow_disk_slows_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost while the disk does not keep up: who adds an event waits for room."""
    monkeypatch.setattr(audit_log, "QUEUED_EVENTS_MAX", 2)
    written: list[bytes] = []
    log = AuditLog(written.append)
    adding = asyncio.create_task(_add(log, 5))
    await asyncio.sleep(0)
    assert not adding.done()
    writing = asyncio.create_task(log.run())
    await adding
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await log.close()
    assert b"".join(written) == b'{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}\n'


async def test_a_full_disk_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Events that could not be written are counted in the log, and the next ones are tried again."""
    faults: list[Any] = [OSError(28, "No space left on device")]
    written: list[bytes] = []

    def write(lines: bytes) -> None:
        if faults:
            raise faults.pop()
        written.append(lines)

    log = AuditLog(write)
    await _add(log, 2)
    await log.close()
    await _add(log, 1)
    await log.close()
    assert "2 audit events could not be written: [Errno 28] No space left on device" in caplog.text
    assert written == [b'{"n":0}\n']


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder that is not there is one sentence at the start."""
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        audit_log.open_log(tmp_path / "missing" / "audit.log")


async def _add(log: AuditLog, count: int) -> None:
    for number in range(count):
        await log.add({"n": number})
