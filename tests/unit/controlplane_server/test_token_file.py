"""Further users from a file of tokens."""

import logging
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.controlplane.auth import token_file
from podscaler.controlplane.registry.users import User


def _file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "users.csv"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_users_by_token(tmp_path: Path) -> None:
    """A line is a token, a name, a uid, and the groups in quotes; empty lines are no users."""
    text = 't1,ann,1,"a,b"\n\nt2,bob,2\nt3,eve,,c\n'
    assert token_file.read(_file(tmp_path, text)) == {
        "t1": User("ann", ("a", "b"), "1"),
        "t2": User("bob", (), "2"),
        "t3": User("eve", ("c",), ""),
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("t1,ann\n", "line 1: expected a token, a user name and a uid, separated by commas", id="short"),
        pytest.param(",ann,1\n", "line 1: the token is empty", id="no token"),
        pytest.param("t1,,1\n", "line 1: the name is empty", id="no name"),
        pytest.param("t1,ann,1\nt1,bob,2\n", "line 2: this token is another user's already", id="twice"),
    ],
)
def test_faulty_lines(tmp_path: Path, text: str, fault: str) -> None:
    """A line that names no user is told with its number, and never with its token."""
    with pytest.raises(UsageError, match=fault) as raised:
        token_file.read(_file(tmp_path, text))
    assert "t1" not in str(raised.value).replace(str(tmp_path), "")


def test_a_file_that_others_may_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tokens are secrets."""
    with caplog.at_level(logging.WARNING):
        token_file.read(_file(tmp_path, "t1,ann,1\n", 0o644))
    assert "its mode should be 0600" in caplog.text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Asked for and missing is the user's mistake."""
    with pytest.raises(UsageError, match="there is no token file"):
        token_file.read(tmp_path / "none")
