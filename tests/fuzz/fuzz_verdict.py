"""What every answer must be, whatever was asked: a success, or a proper refusal, and nothing in the server's log.

Called by the tests of this folder after each request.
"""

import json
import logging
import re
from typing import Any

from fuzz_client import Answer, Request

UPSTREAMS_5XX = {
    r"resourceVersion should not be set on objects to be created": "rest.BeforeCreate returns a bare error",
    r"Timeout: Too large resource version: ": "a 504: upstream waits three seconds for such a version",
    r"strconv.ParseUint: parsing": "the store's versioner returns the parser's error for a resourceVersion",
    r"failed to create typed patch object": "structured-merge-diff's error is passed on as it is",
    r"failed to convert new object": "so is the decoder's after an apply",
    r"failed to prune fields: ": "and that of a conversion during an apply",
    r"does not contain declared merge key": "one of the errors of strategic merge that upstream has no API error for",
    r"unknown patch type: ": "as above",
    r"The order in patch list:": "as above",
    r"list element types are not identical: ": "as above",
    r"no elements in any of the given slices": "as above",
    r"expected a \[\]interface \{\}, but received a ": "as above",
    r"cannot merge lists without merge key for type string": "as above",
    r"target\.(kind|name): ": "BindingREST returns the faults of a Binding as they are",
    r"unable to determine kind and namespace from url": "a path of watches that ends too early is no request at all",
    r"the spec replicas field \S+ does not exist": "ScaleREST.Get of a custom object that lacks it",
}
"""Messages of refusals that are a 500 (or 504) upstream too, with the reason; patterns."""
PLAIN_TEXT = frozenset({"text/plain"})


class Alarm(logging.Handler):
    """Keeps what the server logs as an error; a traceback in a log is a defect whatever the answer was."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._records: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self._records.append(self.format(record))

    def taken(self) -> str:
        """What was logged since it was last asked."""
        text, self._records = "\n".join(self._records), []
        return text


def fault(answer: Answer, request: Request) -> str:
    """What is wrong with an answer, empty where nothing is."""
    if answer.status >= 500:
        return _server_fault(answer)
    if answer.content is None or answer.status == 101 or request.method == "HEAD":
        return ""
    if answer.status == 404 and "/openapi/v3/" in request.target:  # upstream's has no words either
        return ""
    if not 200 <= answer.status < 500 or (300 <= answer.status < 400 and "Location" not in answer.headers):
        return f"status {answer.status}"
    if answer.media_type == "application/json":
        return _json_fault(answer)
    if answer.status >= 400 and answer.media_type == "text/plain":
        return "" if answer.content.strip() else "a refusal without a word"
    return ""


def check(answer: Answer, request: Request, alarm: Alarm) -> None:
    """Fail with the request where an answer, or the log after it, is not as it must be."""
    logged = alarm.taken()
    wrong = f"logged {logged}" if logged else fault(answer, request)
    assert not wrong, f"{wrong}\n{answer.status} {(answer.content or b'')[:500]!r}\n{request}"


def _server_fault(answer: Answer) -> str:
    text = (answer.content or b"").decode("utf-8", "replace")
    if any(re.search(pattern, text) for pattern in UPSTREAMS_5XX):
        return ""
    return f"status {answer.status}"


def _json_fault(answer: Answer) -> str:
    try:
        value = json.loads(answer.content or b"", parse_constant=_refuse)
    except ValueError as error:
        return f"not JSON: {error}"
    return _status_fault(value, answer.status) if answer.status >= 400 else ""


def _status_fault(value: Any, code: int) -> str:
    if not isinstance(value, dict) or value.get("kind") != "Status":
        return "" if isinstance(value, dict) and value.get("metadata") else "a refusal that is no Status"
    told = (value.get("apiVersion"), value.get("status"), value.get("code"))
    if told != ("v1", "Failure", code) or not isinstance(value.get("message"), str):
        return f"a Status that says {told}"
    return ""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
