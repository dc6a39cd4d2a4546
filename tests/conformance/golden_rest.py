"""Replays golden REST captures against a server: fills in requests, sends them, compares the answers.

Called by test_golden_rest and test_recorded_rest, and by the recorder of further captures. Source of the form:
tests/conformance/golden/README.md.
"""

import base64
import http.client
import json
import random
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from golden_matching import Difference, Matcher, told_events
from golden_server import ADMIN_TOKEN, VIEWER_TOKEN

CAPTURE = re.compile(r"\$\{(\d+):([^}]*)\}")
TOKENS = {"admin": ADMIN_TOKEN, "viewer": VIEWER_TOKEN, "invalid": "no-such-token", "none": ""}
KEPT_HEADERS = ("Allow", "Retry-After")
SETTLE_S = 0.25
PATIENCE_S = 120


def new_ident() -> str:
    """A name of eight letters, unique to one case."""
    return f"q{''.join(random.choices('bcdfghjkmnpqrstvwxz', k=6))}q"


@dataclass
class Reply:
    """One answer: `content` is decoded JSON where it is JSON, else text."""

    status: int
    headers: http.client.HTTPMessage
    content: Any


@dataclass
class Replay:
    """One case against the server at `url` (whose certificate, if any, is not verified), in a namespace of its own."""

    url: str
    case: dict[str, Any]
    ident: str = field(default_factory=new_ident)
    matcher: Matcher = field(default_factory=Matcher)
    bodies: list[Any] = field(default_factory=list)
    _connection: http.client.HTTPConnection | None = field(default=None, init=False)

    def run(self) -> str:
        """What the first difference is, empty where there is none."""
        try:
            return self._run()
        finally:
            self._leave()

    def _run(self) -> str:
        if self.case.get("namespace", True):
            meta = {"name": f"ns-{self.ident}"}
            self._call(
                {"method": "POST", "path": "/api/v1/namespaces", "body": {"kind": "Namespace", "metadata": meta}}
            )
        for number, step in enumerate(self.case.get("steps") or [self.case]):
            try:
                self._run_step(step)
            except Difference as difference:
                request = step["request"]
                return f"step {number} {request['method']} {request['path']} {difference}"
        return ""

    def _run_step(self, step: dict[str, Any]) -> None:
        if step.get("compactFirst"):
            self._call({"method": "POST", "path": "/podscaler/compact"})
        request = self._filled(step["request"])
        by_name = step.get("compare") == "by-name"
        if request.get("watch"):
            self._watch(step, request)
            return
        reply = self._call(request)
        self.bodies.append(reply.content)
        if step.get("waitCrd") and reply.status == 201:
            self._wait_until_served(request["body"]["spec"])
        self._check(step["response"], reply, project=step.get("project"), by_name=by_name)

    def _wait_until_served(self, spec: dict[str, Any]) -> None:
        """Until the objects of a new definition can be listed."""
        served = next(version["name"] for version in spec["versions"] if version["served"])
        path = f"/apis/{spec['group']}/{served}/{spec['names']['plural']}"
        deadline = time.monotonic() + PATIENCE_S
        while self._call({"method": "GET", "path": path}).status != 200 and time.monotonic() < deadline:
            time.sleep(0.02)

    def _check(self, wanted: dict[str, Any], reply: Reply, *, project: Any = None, by_name: bool = False) -> None:
        content = reply.content
        if wanted["status"] != reply.status:
            raise Difference(f"(status): wanted {wanted['status']}, got {reply.status} {json.dumps(content)[:300]}")
        self._check_headers(wanted.get("headers", {}), reply.headers)
        content = projected(content, project)
        expected = wanted.get("body", wanted.get("text"))
        if expected is not None:
            self.matcher.match(self._filled_back(expected), content, by_name=by_name)

    def _check_headers(self, wanted: dict[str, Any], got: http.client.HTTPMessage) -> None:
        media_type = wanted.get("Content-Type", "").partition(";")[0]
        if "Content-Type" in wanted and got.get_content_type() != media_type:
            raise Difference(f"(Content-Type): wanted {media_type}, got {got.get_content_type()}")
        warnings = self._filled_back(wanted.get("Warning", []))
        self.matcher.match(warnings, got.get_all("Warning") or [], "(Warning)")
        for name in KEPT_HEADERS:
            if name in wanted:
                self.matcher.match(wanted[name], got.get(name), f"({name})")

    def _watch(self, step: dict[str, Any], request: dict[str, Any]) -> None:
        wanted = len(step["response"].get("events") or []) if step.get("actions") else None
        if wanted is not None:  # the captured seconds may be over on a busy machine before the actions are
            request = request | {"query": request["query"] | {"timeoutSeconds": str(PATIENCE_S)}}
        events, replies = self.watched(step, request, wanted=wanted)
        if not isinstance(events, Reply) and step["response"]["status"] != HTTPStatus.OK:
            raise Difference(f"(status): wanted {step['response']['status']}, got a stream")
        if isinstance(events, Reply):
            self.bodies.append(events.content)
            self._check(step["response"], events)
            return
        for wanted, reply in zip(step["response"].get("actions") or [], replies, strict=True):
            self._check(wanted, reply)
        self.matcher.match(self._filled_back(step["response"]["events"]), list(told_events(events)), "(events)")
        self.bodies.append(events)

    def watched(
        self, step: dict[str, Any], request: dict[str, Any], *, wanted: int | None = None
    ) -> tuple[list[Any] | Reply, list[Reply]]:
        """The events of a watch, or its refusal, and the answers to the step's actions meanwhile.

        Args:
            step: whose actions are taken.
            request: begins the watch.
            wanted: leave it when so many have come, and what else comes in a moment; None: the server ends it.
        """
        with closing(self._connect()) as connection, self._send(connection, request) as answer:
            if answer.status != 200:
                return Reply(answer.status, answer.headers, _content(answer.headers, answer.read())), []
            events: list[Any] = []
            reader = threading.Thread(target=_read_events, args=(answer, events), daemon=True)
            reader.start()
            time.sleep(SETTLE_S)
            replies = [self._call(self._filled(action["request"])) for action in step.get("actions") or []]
            if wanted is not None and connection.sock is not None:
                _await_events(events, wanted)
                connection.sock.shutdown(socket.SHUT_RDWR)
            reader.join(timeout=PATIENCE_S)
        return events, replies

    def _call(self, request: dict[str, Any]) -> Reply:
        """The answer, over one connection for as long as the server keeps it."""
        connection = self._connection or self._connect()
        if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:  # the server has ended it
            connection.close()
        self._connection = connection
        with self._send(connection, request) as answer:
            return Reply(answer.status, answer.headers, _content(answer.headers, answer.read()))

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPConnection:
        scheme, _, place = self.url.partition("://")
        if scheme == "http":
            return http.client.HTTPConnection(place, timeout=PATIENCE_S)
        return http.client.HTTPSConnection(place, timeout=PATIENCE_S, context=ssl._create_unverified_context())

    def _send(self, connection: http.client.HTTPConnection, request: dict[str, Any]) -> http.client.HTTPResponse:
        query = urllib.parse.urlencode(list((request.get("query") or {}).items()))
        path = f"{request['path']}?{query}" if query else request["path"]
        headers = {"Accept": "application/json", **(request.get("headers") or {})}
        token = TOKENS[request.get("user", "admin")]
        if token:
            headers["Authorization"] = f"Bearer {token}"
        body = _body(request)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(request["method"], path, body=body, headers=headers)
        return connection.getresponse()

    def _filled(self, value: Any) -> Any:
        """A captured request with what this case makes of its placeholders."""
        if isinstance(value, dict):
            return {self._filled(key): self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        value = self._filled_back(value)
        whole = CAPTURE.fullmatch(value)
        if whole:
            return _at(self.bodies[int(whole[1])], whole[2])
        return CAPTURE.sub(lambda found: str(_at(self.bodies[int(found[1])], found[2])), value)

    def _filled_back(self, value: Any) -> Any:
        """A captured value with this case's names."""
        if isinstance(value, str):
            return value.replace("{ns}", f"ns-{self.ident}").replace("{id}", self.ident)
        if isinstance(value, dict):
            return {self._filled_back(key): self._filled_back(item) for key, item in value.items()}
        return [self._filled_back(item) for item in value] if isinstance(value, list) else value


def _read_events(answer: http.client.HTTPResponse, events: list[Any]) -> None:
    """Take what comes until either side ends the watch."""
    with suppress(OSError, ValueError, http.client.HTTPException):  # we have left it in the middle
        for line in answer:
            events.append(json.loads(line))


def _await_events(events: list[Any], wanted: int) -> None:
    """Return a moment after so many events are there, bookmarks left out: one too many would come then."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(list(told_events(list(events)))) < wanted and time.monotonic() < deadline_s:
        time.sleep(0.02)
    time.sleep(SETTLE_S)


def projected(content: Any, project: Any) -> Any:
    """The part of an answer that a step is about: all of it, that at a pointer, or a map of several."""
    if isinstance(project, list):
        return {pointer: _at(content, pointer) for pointer in project} if isinstance(content, dict) else content
    return _at(content, project) if project else content


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return f"(nothing at {pointer})"
    return value


def _content(headers: http.client.HTTPMessage, data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    if headers.get_content_type() == "application/json" or text[:1] == "{":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _body(request: dict[str, Any]) -> bytes | None:
    if "rawBodyB64" in request:
        return base64.b64decode(request["rawBodyB64"])
    if "rawBody" in request:
        return str(request["rawBody"]).encode()
    if "rawBodyRepeat" in request:
        parts = request["rawBodyRepeat"]
        return (parts["prefix"] + parts["unit"] * parts["count"] + parts["suffix"]).encode()
    return json.dumps(request["body"]).encode() if "body" in request else None
