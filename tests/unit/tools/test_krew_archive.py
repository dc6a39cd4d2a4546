"""The kubectl plugin for krew: its archive, its manifest by krew's rules, and its launcher."""

import hashlib
import io
import os
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import krew_archive
import pytest
import yaml

from patience import COMMAND_WITHIN_S

ROOT = Path(__file__).parents[3]
TEMPLATE = (ROOT / "deploy" / "krew" / "podscaler.yaml").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
URI = "https://example.com/kubectl-podscaler-v1.2.3.tar.gz"
Json = dict[str, Any]


def manifest() -> Json:
    """A valid one."""
    found: Json = yaml.safe_load(krew_archive.completed(TEMPLATE, "1.2.3", URI, b"archive"))
    return found


def test_the_manifest_has_the_archives_values() -> None:
    """Version, uri and SHA-256; the rest is that of deploy/krew."""
    spec = manifest()["spec"]
    (platform,) = spec["platforms"]
    assert (spec["version"], platform["uri"], platform["sha256"]) == (
        "v1.2.3",
        URI,
        hashlib.sha256(b"archive").hexdigest(),
    )
    assert manifest()["metadata"] == yaml.safe_load(TEMPLATE)["metadata"]
    assert list(krew_archive.faults("podscaler", manifest())) == []


def platform(**changed: Any) -> Json:
    """The only platform with other fields."""
    return manifest()["spec"]["platforms"][0] | changed


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"apiVersion": "v1"}, "apiVersion must be krew.googlecontainertools.github.com/v1alpha2"),
        ({"kind": "Pod"}, "kind must be Plugin"),
        ({"metadata": {"name": "other"}}, "metadata.name must be the name of the file, of letters, digits, _ and -"),
        ({"shortDescription": ""}, "spec.shortDescription must be one line"),
        ({"shortDescription": "a\nb"}, "spec.shortDescription must be one line"),
        ({"version": "1.2.3"}, "spec.version must be a semantic version that begins with v"),
        ({"version": "v1.02.3"}, "spec.version must be a semantic version that begins with v"),
        ({"platforms": []}, "spec.platforms must have a platform"),
        ({"platforms": [platform(uri="")]}, "spec.platforms[0].uri must be an https address"),
        (
            {"platforms": [platform(sha256="AB" * 32)]},
            "spec.platforms[0].sha256 must be 64 hexadecimal digits in lower case",
        ),
        ({"platforms": [platform(bin="")]}, "spec.platforms[0].bin is missing"),
        (
            {"platforms": [platform(files=[])]},
            "spec.platforms[0].files must be absent, or have entries with from and to",
        ),
        (
            {"platforms": [platform(files=[{"from": "*"}])]},
            "spec.platforms[0].files must be absent, or have entries with from and to",
        ),
        (
            {"platforms": [platform(selector={})]},
            "spec.platforms[0].selector must select by os and arch, and nothing else",
        ),
        (
            {"platforms": [platform(selector={"matchLabels": {"libc": "glibc"}})]},
            "spec.platforms[0].selector must select by os and arch, and nothing else",
        ),
    ],
)
def test_manifests_that_krew_rejects(changed: Json, expected: str) -> None:
    """One sentence for each rule."""
    broken = manifest()
    for name, value in changed.items():
        (broken if name in broken else broken["spec"])[name] = value
    assert list(krew_archive.faults("podscaler", broken)) == [expected]


def test_the_lock_has_what_is_needed_by_hash() -> None:
    """The dependencies and theirs, nothing of the developers."""
    lock = krew_archive.lock(PROJECT, LOCK)
    entries = [line.partition("==")[0] for line in lock.splitlines() if "==" in line]
    assert {"aiohttp", "multidict", "msgspec"} <= set(entries)
    assert not {"pytest", "mypy", "ruff"} & set(entries)
    assert lock.count("--hash=sha256:") >= len(entries) == len(set(entries))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A stand-in for the wheel."""
    path = tmp_path / f"podscaler-{PROJECT['version']}-py3-none-any.whl"
    path.write_bytes(b"wheel")
    return path


def test_the_archive(wheel: Path) -> None:
    """All files at its top, the launcher executable; the same content gives the same bytes."""
    data = krew_archive.archive(wheel, "lock")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {
        "LICENSE": 0o644,
        "digest": 0o644,
        "kubectl-podscaler": 0o755,
        "requirements.lock": 0o644,
        wheel.name: 0o644,
    }
    assert krew_archive.archive(wheel, "lock") == data
    assert krew_archive.archive(wheel, "other") != data


def test_both_files_are_written(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest names the archive that lies beside it."""
    folder = wheel.parent
    assert krew_archive.main(folder, "https://example.com/v0/") == 0
    written, named = (Path(line) for line in capsys.readouterr().out.splitlines())
    (found,) = yaml.safe_load(named.read_text(encoding="utf-8"))["spec"]["platforms"]
    assert found["uri"] == f"https://example.com/v0/{written.name}"
    assert found["sha256"] == hashlib.sha256(written.read_bytes()).hexdigest()


def test_a_missing_wheel_and_a_wrong_address(tmp_path: Path, wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, exit status 2."""
    assert krew_archive.main(wheel.parent, "ftp://example.com") == 2
    assert krew_archive.main(tmp_path / "empty", "https://example.com") == 2
    assert capsys.readouterr().err == (
        "krew would not accept the manifest: spec.platforms[0].uri must be an https address\n"
        f"{tmp_path}/empty/{wheel.name} is missing: make wheel\n"
    )


@pytest.fixture
def store(tmp_path: Path, wheel: Path) -> Path:
    """The unpacked archive, and a link to its launcher in a folder of programs, as krew makes them."""
    folder = tmp_path / "store"
    with tarfile.open(fileobj=io.BytesIO(krew_archive.archive(wheel, "lock"))) as tar:
        tar.extractall(folder, filter="data")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl-podscaler").symlink_to(folder / "kubectl-podscaler")
    return folder


def launch(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher by its link."""
    variables = {"PATH": os.defpath, "HOME": str(folder), "PODSCALER_PLUGIN_HOME": str(folder / "home"), **environment}
    command = [str(folder / "bin" / "kubectl-podscaler"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=COMMAND_WITHIN_S)


def test_the_launcher_runs_what_is_installed(tmp_path: Path, store: Path) -> None:
    """With all arguments as they are, in the environment of this archive."""
    programs = tmp_path / "home" / (store / "digest").read_text().strip() / "bin"
    programs.mkdir(parents=True)
    (programs.parent / ".ready").touch()
    program = programs / "kubectl-podscaler"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    done = launch(tmp_path, "list", "-n", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "list|-n|a b|", "")


def test_the_launcher_needs_a_python(tmp_path: Path, store: Path) -> None:
    """One that is too old does not count, and nothing is left behind as if it were ready."""
    assert store.exists()
    programs = tmp_path / "old"
    programs.mkdir()
    for name in ("dirname", "readlink", "cat", "mkdir", "flock", "sh", "rm"):
        found = next((Path(each) / name for each in os.defpath.split(":") if (Path(each) / name).exists()), None)
        assert found is not None, name
        (programs / name).symlink_to(found)
    for minor in ("3", "3.11", "3.12", "3.13", "3.14"):
        (programs / f"python{minor}").write_text("#!/bin/sh\nexit 1\n")
        (programs / f"python{minor}").chmod(0o755)
    done = launch(tmp_path, "list", PATH=str(programs))
    assert (done.returncode, done.stderr) == (
        2,
        "kubectl podscaler: it needs Python 3.11 or newer with its module venv (Debian: python3-venv)\n",
    )
    assert list((tmp_path / "home").glob("*/.ready")) == []
