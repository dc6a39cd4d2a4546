"""`podscaler backup` and `restore` with a real `up`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from up_process import Up

from patience import COMMAND_WITHIN_S

pytestmark = [pytest.mark.e2e]

MAPS = "/api/v1/namespaces/default/configmaps"


def podscaler(*args: str) -> str:
    """What a command that must succeed prints."""
    command = [sys.executable, "-m", "podscaler", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=True).stdout


def test_a_lost_data_dir_comes_back_from_a_backup(tmp_path: Path) -> None:
    """Saved while `up` runs, restored after everything is gone: the same objects, and the same kubeconfig works."""
    up, file = Up(tmp_path / "data", ("--api-only",)), tmp_path / "cluster.backup"
    flags = ("--data-dir", str(up.data_dir), str(file))
    try:
        up.start()
        made = up.create(MAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}})
        assert f"objects of {up.data_dir} as of revision " in podscaler("backup", *flags)
        up.create(MAPS, {"metadata": {"name": "later"}})
        before = up.kubeconfig.read_text()
        up.kill()
        shutil.rmtree(up.data_dir)
        podscaler("restore", *flags)
        up.start()
        assert up.kubeconfig.read_text() == before
        assert up.get(f"{MAPS}/kept") == made
        assert up.find(f"{MAPS}/later") is None
    finally:
        up.kill()
