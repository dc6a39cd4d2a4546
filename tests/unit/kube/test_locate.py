"""Where a program in a pod looks for its API server, whoever it runs as."""

from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.kube.config import locate


def no_home() -> Path:
    """As Path.home where the user has no entry in the passwd file."""
    raise RuntimeError("Could not determine home directory.")


def unreadable(path: Path) -> bool:
    """As Path.exists in a folder of somebody else's."""
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize(
    ("method", "instead"),
    [
        pytest.param("home", no_home, id="a number without a home"),
        pytest.param("exists", unreadable, id="a home of somebody else's"),
    ],
)
def test_a_user_without_a_home_has_no_kubeconfig_there(
    method: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pod the user may be any number: the search goes on with the pod's own service account."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "h")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    monkeypatch.setattr(Path, method, instead)
    with pytest.raises(UsageError, match=r"^in-cluster configuration needs"):
        locate.find_config()
