"""Runs the informers of one controller together: autoscalers and all pods, cached and updated by watches.

`podscaler.controller.assembly` makes one; syncs read the caches, and the controller runs the watches. A further watched
kind: its cache and watch here, and its task in `assembly`.
"""

import random
from collections.abc import Sequence

from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.controller.informers import observed_objects
from podscaler.controller.informers.autoscaler_informer import AutoscalerInformer
from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.core.model.emulation import Emulation
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector


class ControllerInformers:
    """The autoscalers and pods of the cluster as one controller reads them.

    Args:
        autoscalers: the informer of the kinds that the controller manages.
        rules: how the emulated Kubernetes version reads pods.
        with_json: whether pods are cached as JSON, too, for a recording.

    Attributes:
        pods: the cache of all pods.
    """

    def __init__(
        self,
        client: Client,
        autoscalers: AutoscalerInformer,
        rules: Emulation,
        *,
        clock: Clock,
        rng: random.Random,
        with_json: bool,
    ) -> None:
        self.autoscalers = autoscalers
        self.pods: Cache[CachedPod] = Cache()
        source = observed_objects.pod_source(rules, with_json=with_json)
        self._pod_watch = Reflector(client, source, cache=self.pods, clock=clock, rng=rng)

    def pod_names(self, namespace: str, selector: Selector) -> Sequence[str]:
        """The names of the pods of a namespace that match the selector."""
        return [pod.metadata.name for pod in self.pods.select(namespace, selector)]

    def unready(self) -> list[str]:
        """What is not listed yet, one sentence each."""
        reasons = self.autoscalers.unready()
        if not self.pods.synced:
            reasons.append(f"pods are not listed yet: {self._pod_watch.last_error or 'soon'}")
        return reasons

    async def wait_synced(self) -> None:
        """Return once all autoscalers and pods are listed."""
        await self.autoscalers.wait_synced()
        await self.pods.wait_synced()

    async def run_pods(self) -> None:
        """Watch pods until cancelled."""
        await self._pod_watch.run()
