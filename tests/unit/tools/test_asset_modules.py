"""Where the real programs are looked for, and when they are built anew."""

from pathlib import Path

import asset_modules
import pytest
from asset_modules import AssetModule


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AssetModule:
    """A Go module `small` with the programs `one` and `two`, its cache in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(asset_modules, "_SOURCES", tmp_path / "assets")
    source = tmp_path / "assets" / "small"
    source.mkdir(parents=True)
    (source / "go.mod").write_text("module small\n")
    (source / "go.sum").write_text("one line\n")
    return AssetModule("small", {"one": "example.org/one", "two": "example.org/two"}, {"pkg.version": "v1"}, True)


def put(folder: Path, name: str) -> Path:
    """An executable file `name` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch(mode=0o755)
    return folder / name


def test_a_module_is_built_when_every_program_is_there(module: AssetModule) -> None:
    """One program of two is not enough, and which one is missing is told."""
    put(module.folder, "one")
    assert (module.is_built(), module.missing()) == (False, ["two"])
    put(module.folder, "two")
    assert (module.is_built(), module.missing()) == (True, [])


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_another_input_is_another_folder(module: AssetModule, file: str) -> None:
    """A change of any file that goes into the programs makes them be built anew."""
    before = module.folder
    (module.source / file).write_text("other\n")
    assert module.folder != before


def test_the_folder_is_in_the_cache(module: AssetModule, tmp_path: Path) -> None:
    """Programs are kept below XDG_CACHE_HOME, in a folder of the module's version."""
    assert module.folder.parent.parent == tmp_path / "cache" / "podscaler" / "assets"
    assert module.folder.name == "bin"


def test_kubebuilder_assets_are_used_instead(
    module: AssetModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where KUBEBUILDER_ASSETS is set, the programs are looked for there alone."""
    monkeypatch.setattr(asset_modules, "MODULES", (module,))
    put(module.folder, "one")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "theirs"))
    assert asset_modules.find_program("one") is None
    there = put(tmp_path / "theirs", "one")
    assert asset_modules.find_program("one") == there


def test_the_linker_stamps_the_version() -> None:
    """The real programs say which release they are."""
    flags = asset_modules.MODULES[0].linker_flags.split()
    assert "k8s.io/component-base/version.gitVersion=v1.37.0" in flags
    assert "k8s.io/client-go/pkg/version.gitMinor=37" in flags
