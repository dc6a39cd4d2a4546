"""What `make assets` does where it cannot or need not build."""

from pathlib import Path

import asset_modules
import build_assets
import pytest
from asset_modules import AssetModule


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AssetModule:
    """The only Go module there is; nothing of it is built, and no program is on the PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(asset_modules, "_SOURCES", tmp_path / "assets")
    (tmp_path / "assets" / "small").mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (tmp_path / "assets" / "small" / name).touch()
    only = AssetModule("small", {"one": "example.org/one"}, {}, True)
    monkeypatch.setattr(asset_modules, "MODULES", (only,))
    return only


def stand_in(folder: Path, name: str, script: str) -> None:
    """A program `name` in the folder that runs the shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("module")
def test_without_go_a_sentence_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and one line that names what cannot be built."""
    assert build_assets.main() == 2
    assert capsys.readouterr().err == (
        "Go is not installed, and it is needed to build one; tests that need them are skipped\n"
    )


@pytest.mark.usefixtures("module")
def test_a_folder_of_the_users_must_be_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """KUBEBUILDER_ASSETS is never built into; what it lacks is told."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "theirs"))
    assert build_assets.main() == 2
    assert capsys.readouterr().err == f"KUBEBUILDER_ASSETS is {tmp_path}/theirs, where these are missing: one\n"


def test_what_is_there_is_not_built(module: AssetModule) -> None:
    """Exit status 0 without Go where every program is in the cache."""
    stand_in(module.folder, "one", "")
    assert build_assets.main() == 0


def test_programs_come_into_the_cache_whole(module: AssetModule, tmp_path: Path) -> None:
    """What Go writes is found under the module's folder, with nothing unfinished beside it."""
    stand_in(tmp_path / "path", "go", 'while [ "$1" != -o ]; do shift; done; : > "$2"; /bin/chmod 755 "$2"')
    assert build_assets.main() == 0
    assert module.is_built()
    assert sorted(path.name for path in asset_modules.cache().iterdir()) == [module.folder.parent.name, "lock"]


def test_a_failed_build_leaves_nothing(module: AssetModule, tmp_path: Path) -> None:
    """Exit status 1 where Go fails, and no folder that looks built."""
    stand_in(tmp_path / "path", "go", "exit 3")
    assert build_assets.main() == 1
    assert [path.name for path in asset_modules.cache().iterdir()] == ["lock"]
    assert not module.is_built()
