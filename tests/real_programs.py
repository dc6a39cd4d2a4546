"""The real Kubernetes programs that `make assets` built, for tests that compare us with them or let them work on us."""

from pathlib import Path

import asset_modules
import pytest


def real_program(name: str) -> Path:
    """The path of the program; skips the test where `make assets` was not run."""
    path = asset_modules.find_program(name)
    if path is None:
        pytest.skip(f"no {name}: make assets was not run")
    return path
