"""Shells complete podscaler's commands and flags, kubectl those of its plugin."""

import pytest
from click.testing import CliRunner

from podscaler.cli.main import COMMANDS, COMPLETE_VARIABLE, PROGRAM, SHELLS, cli, print_kubectl_proposals

COMMANDS_OF_C = "".join(f"{name}\t{COMMANDS[name][1]}\n" for name in ("completion", "controller", "convert", "crd"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["c"], f"{COMMANDS_OF_C}:4\n", id="a command is begun"),
        pytest.param(["nothing"], ":4\n", id="nothing begins like this"),
        pytest.param(["controller", "--log-format", ""], "text\njson\n:4\n", id="values of a flag"),
        pytest.param(["lint", ""], ":0\n", id="files are the shell's"),
        pytest.param(["controller", "--kubeconfig", ""], ":0\n", id="files of a flag"),
        pytest.param(["completion", "z"], "zsh\n:4\n", id="values of an argument"),
    ],
)
def test_kubectl_is_answered_in_cobras_form(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each proposal with its help, then the directive."""
    print_kubectl_proposals(cli, words)
    assert capsys.readouterr().out == said


def test_kubectl_may_ask_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    """No word at all is an empty one: all commands."""
    print_kubectl_proposals(cli, [])
    assert [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()] == [*sorted(COMMANDS), ":4"]


@pytest.mark.parametrize("shell", SHELLS)
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    """It asks the program under its own name."""
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0
    assert f"{COMPLETE_VARIABLE}={shell}_complete" in done.output
    assert PROGRAM in done.output


def test_a_shell_that_is_not_known_is_refused() -> None:
    """Exit status 2, and what there is."""
    done = CliRunner().invoke(cli, ["completion", "tcsh"])
    assert done.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'fish', 'zsh'" in done.output
