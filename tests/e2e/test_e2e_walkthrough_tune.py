"""The walkthrough of docs/walkthrough-tune.md with a real control plane: every block, as it stands there."""

import page_scripts
import pytest
from up_process import Up

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kubectl_present")]

PAGE = (page_scripts.ROOT / "docs" / "walkthrough-tune.md").read_text(encoding="utf-8")
TIMEOUT_S = 250.0
"""For all commands of the page."""


def test_from_a_recording_to_a_better_autoscaler(up: Up) -> None:
    """The figures of the page are those of the commands, and nothing is left."""
    output = page_scripts.run(up, "\n".join(page_scripts.blocks(PAGE, "sh")), timeout_s=TIMEOUT_S)
    shown = page_scripts.blocks(PAGE, "text")[1:]
    assert [block for block in shown if block.strip() not in output] == []
    assert "horizontalpodautoscaler.autoscaling/web created\n95\n" in output
    assert up.kubectl("get", "hpa", "-o", "name") == ""
