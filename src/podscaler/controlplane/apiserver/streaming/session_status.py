"""How a session ended, as the error stream tells it.

Called by `pod_sessions`; pure.

Source: the remote command servers of kubelet and container runtimes; `v5` is translated from `v4` on the way, which
wraps failures a second time.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.streaming.channels import Framing

SUCCESS: Object = {"metadata": {}, "status": "Success"}


def ended(code: int, command: Sequence[str], framing: Framing) -> Object:
    """The Status of a command that ended with exit status `code`."""
    if code == 0:
        return SUCCESS
    if framing.half_closes:
        why = f"command terminated with exit code {code}"
    else:
        why = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {why}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(what: str, why: str, framing: Framing) -> Object:
    """The Status of a session that could not be begun, `what` being `executing command in` or `attaching to`."""
    status = _internal(f"error {what} container: {why}")
    return _internal(status["message"]) if framing.half_closes else status


def message(status: Object, framing: Framing) -> bytes:
    """What the error stream carries; nothing for a success in the oldest protocols."""
    if framing.has_status:
        return json_text.encode(status)
    return b"" if status["status"] == "Success" else str(status["message"]).encode()


def _internal(why: str) -> Object:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }
