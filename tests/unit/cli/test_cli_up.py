"""`podscaler up`: options that cannot be used are refused before anything starts."""

from pathlib import Path

from click.testing import CliRunner

from podscaler.cli.main import cli


def test_a_kubeconfig_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    """The folder is not made, and a sentence names it."""
    folder = tmp_path / "absent"
    result = CliRunner().invoke(
        cli, ["up", "--data-dir", str(tmp_path / "data"), "--kubeconfig-out", str(folder / "config")]
    )
    assert (result.exit_code, result.stderr) == (
        2,
        f"podscaler: --kubeconfig-out: the folder {folder} does not exist\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_heapster_needs_the_node() -> None:
    """`--api-only` has nothing whose usage could be served."""
    result = CliRunner().invoke(cli, ["up", "--api-only", "--serve-heapster"])
    assert (result.exit_code, result.stderr) == (
        2,
        "podscaler: --serve-heapster needs the node, which --api-only leaves out\n",
    )
