"""The `timeout` parameter, which is checked and not needed."""

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver import dispatch


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/pods",
        "/api/v1/pods?timeout=",
        "/api/v1/pods?timeout=1m30s",
        "/api/v1/pods?timeout=-1s",
        "/api/v1/pods?timeoutSeconds=x",
        "/api/v1/pods?watch=true&timeout=x",
        "/api/v1/namespaces/a/pods/b/log?timeout=x",
    ],
)
def test_what_is_let_through(path: str) -> None:
    """Durations as Go reads them; streams are meant to last and are not asked."""
    dispatch.check_timeout(path)


@pytest.mark.parametrize(
    ("text", "why"), [("x", 'time: invalid duration "x"'), ("5", 'time: missing unit in duration "5"')]
)
def test_what_is_refused(text: str, why: str) -> None:
    """Anything else is a 400 in upstream's words."""
    with pytest.raises(StatusError) as raised:
        dispatch.check_timeout(f"/api/v1/pods?timeout={text}")
    expected = f"invalid timeout specified in the request URL - {why}"
    assert (raised.value.code, raised.value.message) == (400, expected)
