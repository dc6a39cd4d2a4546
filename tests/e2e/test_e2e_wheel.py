"""The wheel where nothing else of this repository is: commands, data files, completion, the kubectl plugin."""

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import prerequisites
from patience import COMMAND_WITHIN_S
from real_programs import installed_kubectl

pytestmark = [pytest.mark.e2e]

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` builds."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=COMMAND_WITHIN_S)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel; other packages are those of this one.

    Nothing is fetched: the environment sees the packages that are here, except for the podscaler that is here.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run(
        [*pip, "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True, timeout=COMMAND_WITHIN_S
    )
    return folder / "bin"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Runs a program of the environment, with kubectl beside; it must end with status 0."""
    kubectl = installed_kubectl()
    path = os.pathsep.join([str(installed), *([str(Path(kubectl).parent)] if kubectl else [])])
    packages = os.pathsep.join(folder for folder in site.getsitepackages() if Path(folder).is_dir())
    environment = {"PATH": path, "PYTHONPATH": packages, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def program(*command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=COMMAND_WITHIN_S,
        )
        assert done.returncode == 0, done.stderr
        return done

    return program


@pytest.mark.slow
def test_it_is_the_wheels_podscaler_that_runs(run: Run, installed: Path) -> None:
    """Not that of the repository; and it knows its version."""
    found = run("python", "-c", "import podscaler; print(podscaler.__file__)").stdout.strip()
    assert Path(found).is_relative_to(installed.parent)
    assert run("podscaler", "--version").stdout == "podscaler, version 0.1.0\n"


@pytest.mark.slow
def test_every_command_can_be_loaded(run: Run) -> None:
    """Nothing that one imports is missing from the wheel."""
    load = "import click; from podscaler.cli.main import cli; context = click.Context(cli); "
    show = "print(all(cli.get_command(context, name) for name in cli.list_commands(context)))"
    assert run("python", "-c", load + show).stdout == "True\n"


@pytest.mark.slow
def test_data_files_are_in_it(wheel: Path, run: Run) -> None:
    """The facts about types, without which nothing is decoded; and the mark that it has types."""
    names = zipfile.ZipFile(wheel).namelist()
    here = [path.relative_to(ROOT / "src") for path in (ROOT / "src" / "podscaler").rglob("*.json")]
    assert {str(path) for path in here} <= set(names)
    assert "podscaler/py.typed" in names
    hpa = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {maxReplicas: 2}\n"
    assert "autoscaling/v2" in run("podscaler", "convert", "-", "--to", "autoscaling/v2", stdin=hpa).stdout


def test_nothing_is_in_it_that_does_not_belong(wheel: Path) -> None:
    """The package, its licence and its metadata; no tests, no caches."""
    names = zipfile.ZipFile(wheel).namelist()
    strangers = [name for name in names if not name.startswith(("podscaler/", "podscaler-0.1.0.dist-info/"))]
    assert strangers == []
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    assert "podscaler-0.1.0.dist-info/licenses/LICENSE" in names


@pytest.mark.slow
@prerequisites.BASH.mark(is_there=shutil.which("bash") is not None)
def test_bash_completes_commands(run: Run, installed: Path) -> None:
    """With the script read, TAB after `podscaler conv` finds `convert`."""
    bash = shutil.which("bash")
    assert bash is not None
    script = (
        'source <(podscaler completion bash); COMP_WORDS=(podscaler conv); COMP_CWORD=1; PATH="$PATH:/usr/bin:/bin"; '
        '_podscaler_completion podscaler; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert run(bash, "-c", script).stdout == "convert\n"


@pytest.mark.slow
@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_finds_the_plugin(run: Run) -> None:
    """Every command of the plugin is podscaler's own, and kubectl completes them."""
    assert run("kubectl", "podscaler", "--version").stdout == "podscaler, version 0.1.0\n"
    assert run("kubectl", "podscaler", "explain", "--help").stdout.startswith("Usage: kubectl podscaler explain ")
    proposed = run("kubectl", "__complete", "podscaler", "conv").stdout.splitlines()
    assert [line.partition("\t")[0] for line in proposed if not line.startswith("[Debug]")] == ["convert", ":4"]
