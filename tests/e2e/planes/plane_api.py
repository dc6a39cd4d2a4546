"""A client of either control plane for tests, which keeps a connection for each thread and survives restarts."""

import http.client
import json
import threading
from pathlib import Path
from typing import Any

import yaml
from benchmarks.gate import client_context
from kept_connection import KeptConnection
from up_process import Answer, Object

from patience import WITHIN_S

MERGE_PATCH = "application/merge-patch+json"


class PlaneApi:
    """What a kubeconfig's user may do, in short.

    Args:
        kubeconfig: with inline data, of a server with https.
    """

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        self._place = (host, int(port))
        self._context = client_context(cluster, user)
        self._token = user.get("token", "")
        self._local = threading.local()

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Answer:
        """One request; a connection that the server closed meanwhile is replaced. Raises OSError."""
        if getattr(self._local, "connection", None) is not None:
            try:
                return self._ask(method, path, body, content_type)
            except (OSError, http.client.HTTPException):
                self.close()
        self._local.connection = KeptConnection(*self._place, context=self._context, timeout=WITHIN_S)
        try:
            return self._ask(method, path, body, content_type)
        except http.client.HTTPException as error:
            self.close()
            raise OSError(str(error)) from error
        except OSError:
            self.close()
            raise

    def _ask(self, method: str, path: str, body: Any, content_type: str) -> Answer:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        self._local.connection.request(method, path, body=data, headers=headers)
        response = self._local.connection.getresponse()
        text = response.read().decode()
        is_json = response.headers.get("Content-Type", "").startswith("application/json") and "watch=" not in path
        return Answer(response.status, json.loads(text) if is_json else text)

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.end()
        self._local.connection = None

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        answer = self.request("GET", path)
        assert answer.status == 200, (path, answer)
        return answer.body

    def find(self, path: str) -> Any:
        """The body of a GET, None for 404."""
        answer = self.request("GET", path)
        assert answer.status in {200, 404}, (path, answer)
        return answer.body if answer.status == 200 else None

    def versions(self, path: str, since: str) -> list[Object]:
        """Every version that an object of a collection has had after that resourceVersion, in order, as a watch tells.

        Takes a second.
        """
        answer = self.request("GET", f"{path}?watch=true&resourceVersion={since}&timeoutSeconds=1")
        assert answer.status == 200, (path, answer)
        events = [json.loads(line) for line in answer.body.splitlines()]
        assert not [each for each in events if each["type"] == "ERROR"], events
        return [each["object"] for each in events]

    def create(self, path: str, body: Object) -> Object:
        """The object as created by a POST that must succeed."""
        answer = self.request("POST", path, body)
        assert answer.status == 201, (path, answer)
        created: Object = answer.body
        return created

    def patch(self, path: str, body: Any) -> Object:
        """The object after a merge patch that must succeed."""
        answer = self.request("PATCH", path, body, content_type=MERGE_PATCH)
        assert answer.status == 200, (path, answer)
        patched: Object = answer.body
        return patched

    def delete(self, path: str, body: Any = None) -> None:
        """DELETE, which must succeed."""
        answer = self.request("DELETE", path, body)
        assert answer.status in {200, 202}, (path, answer)

    def is_ready(self) -> bool:
        """Whether the server answers that it is ready."""
        try:
            return self.request("GET", "/readyz").status == 200
        except OSError:
            return False
