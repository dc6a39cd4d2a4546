"""A fake node without processes: it binds all pods, makes them Ready after a delay, and removes deleted pods.

Tests of controllers run it on a registry (`open_registry`), in virtual time. Its pods never fail; a test that needs a
failed pod writes that status itself.
"""

import asyncio
from itertools import count

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import Registry

PODS = "pods"


class PlayedNode:
    """A node that binds all pods of a registry, makes them Ready and removes deleted ones.

    Args:
        startup_s: the seconds from the binding of a pod until it is Ready; None if it never is.
        stop_s: the seconds from the deletion of a pod until it is removed.
    """

    def __init__(self, registry: Registry, clock: Clock, *, startup_s: float | None = 0.0, stop_s: float = 0.0) -> None:
        self.startup_s = startup_s
        self.stop_s = stop_s
        self._registry = registry
        self._clock = clock
        self._pod_numbers = count(1)
        self._starting_uids: set[str] = set()
        self._stopping_uids: set[str] = set()

    async def run(self) -> None:
        """Run the pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            async for change in self._registry.watch(PODS):
                pod, uid = change.object, change.object["metadata"]["uid"]
                if change.type == "DELETED":
                    continue
                if "deletionTimestamp" in pod["metadata"] and uid not in self._stopping_uids:
                    self._stopping_uids.add(uid)
                    group.create_task(self._stop(pod))
                elif "deletionTimestamp" not in pod["metadata"] and uid not in self._starting_uids:
                    self._starting_uids.add(uid)
                    group.create_task(self._start(pod))

    async def _start(self, pod: Object) -> None:
        """Bind a pod, give it a loopback address of its own, and make it Ready after the delay."""
        number = next(self._pod_numbers)
        ip = f"127.9.{number // 250 + 1}.{number % 250 + 1}"  # no part is 0 or 255
        status = {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "startTime": rfc3339(self._clock.now_ns()),
        }
        try:
            await self._registry.update(
                PODS, {**pod, "spec": {**pod["spec"], "nodeName": "played"}}, subresource="binding"
            )
            await self._write(pod, {**status, "conditions": [self._ready_condition("False")]})
            if self.startup_s is not None:
                await self._clock.sleep(self.startup_s)
                await self._write(pod, {**status, "conditions": [self._ready_condition("True")]})
        except StatusError:
            return  # the pod was removed or deleted meanwhile

    async def _stop(self, pod: Object) -> None:
        """Remove a deleted pod after the delay."""
        await self._clock.sleep(self.stop_s)
        try:
            await self._registry.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], grace_period_s=0)
        except StatusError:
            return  # removed meanwhile

    async def _write(self, pod: Object, status: Object) -> None:
        """Set these fields of a pod's status. Raises StatusError, such as 404 for a pod that is gone."""

        def merge_status(newest: Object) -> None:
            newest["status"] = {**newest.get("status", {}), **status}

        metadata = pod["metadata"]
        await self._registry.mutate(PODS, metadata["namespace"], metadata["name"], merge_status, subresource="status")

    def _ready_condition(self, status: str) -> Object:
        return {"type": "Ready", "status": status, "lastTransitionTime": rfc3339(self._clock.now_ns())}
