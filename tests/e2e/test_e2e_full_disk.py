"""A real `up` on a disk of 3 MB that runs full: it goes on, can be emptied, and starts again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from up_process import Up

import small_disk

pytestmark = [pytest.mark.e2e]

MAPS = "/api/v1/namespaces/default/configmaps"
A_FEW = 5
"""How many fit depends on when the write-ahead log was emptied last: some 20."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """An API server whose data directory is all of a small disk but what was there before."""
    with small_disk.mounted(tmp_path / "disk", size="3m") as place:
        started = Up(place / "data", ("--api-only",))
        started.log = tmp_path / "log"
        try:
            yield started.start()
        finally:
            started.kill()


def fill(up: Up) -> list[str]:
    """Names of the ConfigMaps of 20 KB that went in until one did not."""
    names: list[str] = []
    while True:
        body = {"metadata": {"name": f"x{len(names)}"}, "data": {"pad": "x" * 20_000}}
        answer = up.request("POST", MAPS, body)
        if answer.status != 201:
            said = {name: answer.body.get(name) for name in ("code", "reason", "message")}
            assert said == {"code": 500, "reason": None, "message": "etcdserver: mvcc: database space exceeded"}
            return names
        names.append(body["metadata"]["name"])


def test_a_full_disk_can_be_emptied_and_started_on(up: Up) -> None:
    """Creates are refused as upstream refuses them, also after a restart without a free byte; deletes go through."""
    names = fill(up)
    assert len(names) > A_FEW
    up.delete(f"{MAPS}/{names.pop()}")
    assert up.stop() == 0
    small_disk.fill(up.data_dir.parent)
    up.start()
    for name in names:
        up.delete(f"{MAPS}/{name}")
    (up.data_dir.parent / "filling").unlink()
    assert len(fill(up)) > A_FEW
