"""Recordings that once made `podscaler replay` and `podscaler explain` fail."""

import json

import pytest
from click.testing import CliRunner

from podscaler.cli.main import cli

HEADER = '{"recording": 1, "kubernetes": "1.37.0", "flags": {}}'
DEEP = '{"a": ' * 100_000
SYNC = {
    "time": "2026-01-01T00:00:00Z",
    "hpa": {
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "c"},
            "maxReplicas": 2,
            "metrics": [{"type": "External", "external": {"metric": {"name": "q", "selector": {}}}}],
        },
    },
}


def with_selector(selector: object) -> str:
    """A sync of an autoscaler whose metric has that selector."""
    text = json.dumps(SYNC)
    return text.replace('"selector": {}', f'"selector": {json.dumps(selector)}')


@pytest.mark.parametrize("command", ["replay", "explain"])
@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        pytest.param([DEEP], "line 1: the line is nested too deeply", id="a header without end"),
        pytest.param([HEADER, DEEP], "line 2: the line is nested too deeply", id="a line without end"),
        pytest.param(
            [HEADER, with_selector({"matchExpressions": [["a"]]})],
            "line 2: Expected `object`, got `array`",
            id="a list as a requirement",
        ),
        pytest.param(
            [HEADER, with_selector({"matchExpressions": [{"key": "a", "operator": True}]})],
            "line 2: Expected `str`, got `bool`",
            id="a boolean as an operator",
        ),
        pytest.param(
            [HEADER, with_selector({"matchLabels": {"a": 1}})],
            "line 2: Expected `str`, got `int`",
            id="a number as a label",
        ),
    ],
)
def test_sentence(command: str, lines: list[str], sentence: str) -> None:
    """One sentence that names the line, and exit status 2."""
    result = CliRunner().invoke(cli, [command, "-"], input="\n".join(lines))
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
