"""The Dockerfile passes hadolint, and holds what the image promises; it is not built here, for want of base images."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import prerequisites
from patience import COMMAND_WITHIN_S

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
LOCK = ROOT / "deploy" / "requirements.lock"


def stages() -> list[str]:
    """The text of each stage, without comments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return re.split(r"^FROM .*\n", text, flags=re.MULTILINE)


def test_hadolint_has_nothing_to_say() -> None:
    """All of its rules, warnings and style too."""
    hadolint = Path(sys.executable).parent / "hadolint"
    if not hadolint.exists():
        prerequisites.HADOLINT.skip()
    done = subprocess.run([hadolint, "--failure-threshold=style", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_last_stage_runs_nothing_and_is_not_root() -> None:
    """No shell is needed in the image, the user is a number, files belong to root."""
    last = stages()[-1]
    assert re.findall(r"^(RUN|ADD|VOLUME)\b", last, re.MULTILINE) == []
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == ["65532:65532"]
    assert "--chown=root:root" in last
    assert 'ENTRYPOINT ["/usr/bin/python3", "-m", "podscaler"]' in last


def test_both_base_images_can_be_pinned() -> None:
    """They are build arguments, so that a digest needs no edit."""
    text = DOCKERFILE.read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BUILD_IMAGE}", "${RUN_IMAGE}"]


def test_every_package_is_checked_by_its_hash() -> None:
    """pip is told so, and each line of the locks has one; no registry is named."""
    for command in re.findall(r"pip install [^&]*", DOCKERFILE.read_text()):
        assert "--require-hashes" in command or "--no-deps" in command
    for lock in (LOCK, LOCK.parent / "build.lock"):
        packages = re.split(r"\n(?=\S)", lock.read_text().strip())
        assert [package for package in packages if "--hash=sha256:" not in package] == []
        assert "://" not in lock.read_text()


def test_the_image_has_the_versions_that_are_tested() -> None:
    """What both lock files name, they name in the same version."""
    tested = dict(re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    shipped = dict(re.findall(r"^(\S+)==(\S+)", LOCK.read_text(), re.MULTILINE))
    assert {name: version for name, version in shipped.items() if tested.get(name, version) != version} == {}
    assert {"aiohttp", "msgspec", "opentelemetry-sdk"} <= set(shipped)


def test_what_is_copied_is_let_through_to_the_builder() -> None:
    """The ignore file leaves everything out but what the Dockerfile names."""
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE.read_text(), re.MULTILINE)]
    ignore = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignore
    assert {name for names in copied for name in names} == {line[1:] for line in ignore if line.startswith("!")}


def test_the_wheel_can_be_made_of_what_is_copied(tmp_path: Path) -> None:
    """Nothing else of the repository is needed to build it."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "wheels")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=COMMAND_WITHIN_S)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name == "podscaler-0.1.0-py3-none-any.whl"
