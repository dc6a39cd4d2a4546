"""The real Kubernetes programs at hand, for tests that compare us with them or let them work on us."""

import shutil
from pathlib import Path

import asset_modules

import prerequisites


def real_program(name: str) -> Path:
    """The path of the program; skips the test where `make assets` was not run."""
    path = asset_modules.find_program(name)
    if path is None:
        prerequisites.built_program(name).skip()
    return path


def installed_kubectl() -> str | None:
    """The path of the kubectl on PATH, None where there is none or its clock is not that of the tests."""
    return None if prerequisites.IS_CLOCK_SHIFTED else shutil.which("kubectl")


def kubectls() -> list[str]:
    """The paths of the kubectl on PATH and of the one that `make assets` built, as far as they are there."""
    built = None if prerequisites.IS_CLOCK_SHIFTED else asset_modules.find_program("kubectl")
    return [str(path) for path in (installed_kubectl(), built) if path is not None]
