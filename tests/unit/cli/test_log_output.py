"""The log of the commands that run for long: levels, and JSON with fields."""

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from patience import WITHIN_S
from podscaler.cli.options.log_output import JSONFormatter
from podscaler.controller.telemetry import current_sync


def line(message: str, *args: object, created_s: float = 1.5, **extra: Any) -> dict[str, Any]:
    """What JSONFormatter makes of a record with these fields, in a sync of shop/web."""
    record = logging.LogRecord("podscaler.x", logging.WARNING, "x.py", 1, message, args, extra.pop("exc_info", None))
    vars(record).update(extra, created=created_s)
    token = current_sync.CURRENT.set(("shop", "web"))
    try:
        found: dict[str, Any] = json.loads(JSONFormatter(current_sync.log_fields).format(record))
    finally:
        current_sync.CURRENT.reset(token)
    return found


def test_a_record_is_an_object_with_its_fields() -> None:
    """Time in UTC, level, logger, text, the sync's autoscaler, and what the record brings."""
    assert line("rescaled to %d", 3, replicas=3) == {
        "ts": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "podscaler.x",
        "msg": "rescaled to 3",
        "kind": "HorizontalPodAutoscaler",
        "namespace": "shop",
        "autoscaler": "web",
        "replicas": 3,
    }


def test_fields_do_not_hide_what_every_record_has() -> None:
    """A field named `msg` or `ts` is dropped; one that the record brings wins over the sync's."""
    found = line("true", ts="never", level="none", autoscaler="other")
    assert (found["msg"], found["level"], found["ts"], found["autoscaler"]) == (
        "true",
        "warning",
        "1970-01-01T00:00:01.500Z",
        "other",
    )


def test_one_record_is_one_line() -> None:
    """Line ends in texts and traces are escaped."""
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        exc_info = sys.exc_info()
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "a\nb", (), exc_info)
    text = JSONFormatter().format(record)
    assert "\n" not in text
    found = json.loads(text)
    assert (found["msg"], found["error"]) == ("a\nb", "first\nsecond")
    assert found["stack"].startswith("Traceback (most recent call last):\n")


def test_the_autoscaler_of_our_own_kind_is_named_as_it_is() -> None:
    """Its kind and its name, not the key under which it is kept."""
    token = current_sync.CURRENT.set(("shop", "podautoscaler/web"))
    found = current_sync.log_fields()
    current_sync.CURRENT.reset(token)
    assert found == {"kind": "PodAutoscaler", "namespace": "shop", "autoscaler": "web"}


def test_outside_of_syncs_no_autoscaler_is_named() -> None:
    """The fields of a sync end with it."""
    assert current_sync.log_fields() == {}


SCRIPT = """
import logging, sys
from podscaler.cli.options import log_output
log_output.configure(sys.argv[1], int(sys.argv[2]), base_level=getattr(logging, sys.argv[3]))
for level in ("debug", "info", "warning"):
    getattr(logging.getLogger("podscaler.part"), level)("at %s", level)
"""


@pytest.mark.parametrize(
    ("verbose", "quiet", "levels"),
    [
        pytest.param(0, "INFO", ["info", "warning"], id="the controller tells what it does"),
        pytest.param(1, "INFO", ["debug", "info", "warning"], id="with -v everything"),
        pytest.param(0, "WARNING", ["warning"], id="up is quiet"),
        pytest.param(1, "WARNING", ["info", "warning"], id="up with -v"),
        pytest.param(5, "WARNING", ["debug", "info", "warning"], id="more cannot be said"),
    ],
)
def test_v_lowers_the_level(verbose: int, quiet: str, levels: list[str]) -> None:
    """Each -v by one, on stderr alone."""
    command = [sys.executable, "-c", SCRIPT, "json", str(verbose), quiet]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=True)
    assert done.stdout == ""
    assert [json.loads(each)["level"] for each in done.stderr.splitlines()] == levels


def test_text_is_a_line_with_time_level_and_logger() -> None:
    """The form that people read, as it always was."""
    command = [sys.executable, "-c", SCRIPT, "text", "0", "WARNING"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=True)
    assert done.stderr.endswith(" WARNING podscaler.part: at warning\n")
