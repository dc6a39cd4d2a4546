"""`mounttest` of the image agnhost: what a pod sees of its volumes."""

import stat
from pathlib import Path

import pytest

from podscaler.controlplane.kubelet.programs import mounttest

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /mnt rw - tmpfs none rw
31 30 0:41 / /mnt/a\\040b rw - overlay none rw
"""


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (stat.S_IFREG | 0o644, "-rw-r--r--"),
        (stat.S_IFREG | 0o400, "-r--------"),
        (stat.S_IFDIR | 0o755, "drwxr-xr-x"),
        (stat.S_IFDIR | 0o1777, "dtrwxrwxrwx"),
        (stat.S_IFDIR | 0o2770, "dgrwxrwx---"),
        (stat.S_IFREG | 0o4755, "urwxr-xr-x"),
        (stat.S_IFCHR | 0o666, "Dcrw-rw-rw-"),
    ],
)
def test_modes_as_go_prints_them(mode: int, text: str) -> None:
    """Kind and special bits are letters before nine of permissions."""
    assert mounttest.mode_text(mode) == text


@pytest.mark.parametrize(
    ("path", "kind"), [("/etc", "ext4"), ("/mnt", "tmpfs"), ("/mnt/x/y", "tmpfs"), ("/mnt/a b/c", "overlay")]
)
def test_file_systems(path: str, kind: str) -> None:
    """The innermost mount counts."""
    assert mounttest.file_system(path, MOUNTS) == kind


def test_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written before its mode and content are printed, whatever the order of the flags."""
    monkeypatch.setattr("os.umask", lambda _: 0)
    path = tmp_path / "new"
    args = [f"--file_perm={path}", f"--new_file_0644={path}"]
    assert mounttest.main(args) == 0
    assert capsys.readouterr().out == (
        f'content of file "{path}": mount-tester new file\n\nperms of file "{path}": -rw-r--r--\n'
    )


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other flags are followed, and the exit status is 1."""
    monkeypatch.setattr("os.umask", lambda _: 0)
    (tmp_path / "b").write_text("text")
    assert mounttest.main([f"--file_mode={tmp_path}/a", f"--file_content={tmp_path}/b"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [f'content of file "{tmp_path}/b": text']


def test_content_in_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read again until it is that of a new file."""
    path = tmp_path / "file"
    contents = ["other", mounttest.INITIAL_CONTENT]
    assert mounttest.print_repeatedly(str(path), 9, True, sleep=lambda _: path.write_text(contents.pop(0)) and None)
    lines = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line]
    assert lines == [
        f"Error reading file {path}",
        f'content of file "{path}"',
        "Unexpected content. Expected",
        ". Retrying",
        f'content of file "{path}"',
    ]
