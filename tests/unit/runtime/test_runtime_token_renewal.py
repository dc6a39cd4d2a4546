"""Tokens in volumes: written when the pod starts, and anew before they expire."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet import token_renewal
from podscaler.controlplane.kubelet.containers.dependencies import Dependencies
from podscaler.controlplane.kubelet.volumes import volume_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.testing import VirtualClock
from podscaler.testing.containers import PlayedContainers
from podscaler.testing.registry import OpenRegistry

TOKEN = {"serviceAccountToken": {"expirationSeconds": 600, "path": "token"}}
VOLUME = {"name": "v", "projected": {"sources": [TOKEN], "defaultMode": 0o640}}
POD: Any = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"volumes": [VOLUME]}}
PLACE = PodPlacement("127.0.0.2", "127.0.0.1", "node")


def test_the_file_of_a_token() -> None:
    """A projected token is a file with the volume's mode; its audience and life are the source's."""
    asked: list[tuple[str, int]] = []

    def issue(_pod: Mapping[str, Any], audience: str, life_s: int) -> str:
        asked.append((audience, life_s))
        return "secret"

    (file,) = volume_files.files(VOLUME, POD, PLACE, volume_files.VolumeSources(lambda *_: None, issue_token=issue))
    assert (file.path, file.data, file.mode, asked) == ("token", b"secret", 0o640, [("", 600)])


def test_an_account_that_is_gone() -> None:
    """A pod whose account is not there waits for it."""

    def issue(*_: Any) -> str:
        raise StatusError('serviceaccounts "x" not found', code=404, reason="NotFound")

    with pytest.raises(ContainerConfigError, match='failed to fetch token: serviceaccounts "x" not found'):
        volume_files.files(VOLUME, POD, PLACE, volume_files.VolumeSources(lambda *_: None, issue_token=issue))


async def test_a_token_is_renewed_in_time(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """A token is written anew after four fifths of its life, and not before; its file keeps its mode."""
    tokens = iter(("second", "third"))
    host = replace(
        PlayedContainers(opened.registry, clock, tmp_path / "node").host, issue_token=lambda *_: next(tokens)
    )
    path = host.paths.volume("u", "v") / "token"
    path.parent.mkdir(parents=True)
    path.write_text("first")
    path.chmod(0o640)
    _set_age(path, clock)
    running = asyncio.create_task(renew(host, POD))
    await clock.advance(420)
    before = path.read_text()
    await clock.advance(60)
    after = path.read_text()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (before, after, path.stat().st_mode & 0o777) == ("first", "second", 0o640)


async def test_a_token_that_cannot_be_renewed(
    opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure is logged, and the next round tries again."""

    def issue(*_: Any) -> str:
        raise StatusError('serviceaccounts "x" not found', code=404, reason="NotFound")

    host = replace(PlayedContainers(opened.registry, clock, tmp_path / "node").host, issue_token=issue)
    path = host.paths.volume("u", "v") / "token"
    path.parent.mkdir(parents=True)
    path.write_text("first")
    _set_age(path, clock)
    running = asyncio.create_task(renew(host, POD))
    await clock.advance(600)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert "the token of pod p cannot be renewed" in caplog.text
    assert path.read_text() == "first"


@pytest.mark.parametrize("path", ["../../victim", "{folder}/victim", "link/victim"], ids=["dots", "absolute", "a link"])
async def test_a_renewal_stays_in_its_volume(
    opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """No path of a token, and no symbolic link, leads to a file outside; a line of the log says so."""
    host = replace(PlayedContainers(opened.registry, clock, tmp_path / "node").host, issue_token=lambda *_: "token")
    folder = host.paths.volume("u", "v")
    folder.mkdir(parents=True)
    victim = folder.parent.parent / "victim"
    victim.write_text("kept")
    (folder / "link").symlink_to(victim.parent)
    _set_age(victim, clock)
    source = {"serviceAccountToken": {"expirationSeconds": 600, "path": path.format(folder=victim.parent)}}
    pod: Any = {**POD, "spec": {"volumes": [{"name": "v", "projected": {"sources": [source]}}]}}
    running = asyncio.create_task(renew(host, pod))
    await clock.advance(600)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert victim.read_text() == "kept"
    assert "the token of pod p cannot be renewed" in caplog.text


async def renew(host: Dependencies, pod: Any) -> None:
    """Renew the tokens of the pod until cancelled."""
    assert host.issue_token is not None
    await token_renewal.run(lambda: [pod], host.issue_token, paths=host.paths, threads=host.threads, clock=host.clock)


def _set_age(path: Path, clock: VirtualClock) -> None:
    """The file was written now, by the clock of the test."""
    now_s = clock.now_ns() // NANOSECONDS
    os.utime(path, (now_s, now_s))
