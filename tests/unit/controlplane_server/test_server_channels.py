"""Messages of the channel protocols, and the Status at the end of a session."""

from typing import Any

import pytest

from podscaler.controlplane.apiserver.streaming import pod_sessions
from podscaler.controlplane.apiserver.streaming.channels import COMMAND_PROTOCOLS, ChannelMessage, ChannelProtocolError

V4, V5 = COMMAND_PROTOCOLS["v4.channel.k8s.io"], COMMAND_PROTOCOLS["v5.channel.k8s.io"]
BASE64, OLD = COMMAND_PROTOCOLS["v4.base64.channel.k8s.io"], COMMAND_PROTOCOLS["channel.k8s.io"]


@pytest.mark.parametrize(
    ("framing", "message"),
    [pytest.param(V4, b"\x01out", id="binary"), pytest.param(BASE64, "1b3V0", id="base64")],
)
def test_messages_both_ways(framing: Any, message: bytes | str) -> None:
    """The channel stands before the bytes, as a digit where messages are text."""
    assert (framing.encode(1, b"out"), framing.decode(message)) == (message, ChannelMessage(1, b"out"))


@pytest.mark.parametrize(
    ("framing", "message", "received"),
    [
        pytest.param(V5, b"\xff\x00", ChannelMessage(0, b"", ends=True), id="half-close"),
        pytest.param(V4, b"\xff\x00", ChannelMessage(255, b"\x00"), id="no half-close before v5"),
        pytest.param(V4, b"", None, id="empty"),
        pytest.param(BASE64, "0???", None, id="no base64"),
    ],
)
def test_what_messages_say(framing: Any, message: bytes | str, received: ChannelMessage | None) -> None:
    """Half-closes are v5's, and what cannot be read is passed over."""
    assert framing.decode(message) == received


@pytest.mark.parametrize("message", [b"\xff", b"\xff\x00\x00", b"\xff\x09"], ids=["none", "two", "unknown"])
def test_half_close_of_no_channel(message: bytes) -> None:
    """A half-close names exactly one channel, or the connection ends."""
    with pytest.raises(ChannelProtocolError):
        V5.decode(message)


@pytest.mark.parametrize(
    ("framing", "why"),
    [
        pytest.param(V4, "error executing command [sh -c exit 3], exit code 3", id="v4"),
        pytest.param(V5, "command terminated with exit code 3", id="v5"),
    ],
)
def test_exit_code(framing: Any, why: str) -> None:
    """An exit status is a Failure with a cause that carries the number."""
    assert pod_sessions.exit_status(3, ("sh", "-c", "exit 3"), framing) == {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {why}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


def test_success() -> None:
    """Exit status 0 is a Success; the oldest protocols say nothing then."""
    status = pod_sessions.exit_status(0, ("true",), V4)
    assert pod_sessions.status_message(status, V4) == b'{"metadata":{},"status":"Success"}'
    assert pod_sessions.status_message(status, OLD) == b""


def test_command_that_cannot_be_started() -> None:
    """The failure is internal; in v5 it has been wrapped twice, as kubectl shows it."""
    why = "error executing command in container: nope"
    once = pod_sessions.failed_status("executing command in", "nope", V4)
    twice = pod_sessions.failed_status("executing command in", "nope", V5)
    assert (once["message"], twice["message"]) == (
        f"Internal error occurred: {why}",
        f"Internal error occurred: Internal error occurred: {why}",
    )
    assert pod_sessions.status_message(once, OLD) == f"Internal error occurred: {why}".encode()
