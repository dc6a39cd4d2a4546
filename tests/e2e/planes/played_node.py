"""A node that tests play: pods that are bound to it run as soon as they are seen, and end when they are deleted."""

import threading
import time
from typing import Any

from plane_api import PlaneApi
from up_process import Object

from patience import WITHIN_S

NODE = "played"
POLL_S = 0.15
_KINDS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


class PlayedNode:
    """Works on a thread of its own from `start` to `stop`; an API server that is away is asked again.

    Args:
        api: of the control plane.
    """

    def __init__(self, api: PlaneApi) -> None:
        self._api = api
        self._running: dict[tuple[str, str], list[str]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="node", daemon=True)
        self.error: BaseException | None = None

    def start(self) -> None:
        """Register the node and begin."""
        self._api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        self._thread.start()

    def stop(self) -> None:
        """End; a failure of the thread is raised here."""
        self._ended.set()
        self._thread.join(WITHIN_S)
        if self.error is not None:
            raise self.error

    def running(self, namespace: str, app: str) -> list[str]:
        """The names of the pods of an app that run."""
        return self._running.get((namespace, app), [])

    def _work(self) -> None:
        try:
            while not self._ended.wait(POLL_S):
                try:
                    self._look()
                except OSError:
                    continue  # the API server is restarted; nothing is forgotten meanwhile
        except BaseException as error:
            self.error = error
        finally:
            self._api.close()

    def _look(self) -> None:
        answer = self._api.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")
        if answer.status != 200:
            return
        running: dict[tuple[str, str], list[str]] = {}
        for pod in answer.body["items"]:
            if self._is_running(pod):
                app = pod["metadata"]["labels"]["app"]
                running.setdefault((pod["metadata"]["namespace"], app), []).append(pod["metadata"]["name"])
        self._running = running

    def _is_running(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self._api.request("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})
            return False
        if pod["status"].get("phase") == "Running":
            return True
        answer = self._api.request(
            "PATCH", f"{path}/status", {"status": status(pod)}, content_type="application/strategic-merge-patch+json"
        )
        return answer.status == 200


def status(pod: Object) -> Any:
    """That of a pod which began to run just now."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    running = {"ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": now}}}
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in _KINDS],
        "containerStatuses": [
            {"name": each["name"], "image": each["image"], "imageID": each["image"]} | running
            for each in pod["spec"]["containers"]
        ],
    }
