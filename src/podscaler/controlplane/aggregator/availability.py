"""Checks the availability of other API servers and sets the condition Available of their APIServices.

`aggregation_layer.Aggregation` runs it in a `control_loop.ControlLoop`; keys are names of APIServices, such as
`v1beta1.metrics.k8s.io`. An APIService is checked when it, its Service or the EndpointSlices of that Service change,
and periodically; after a failure with exponential backoff. A check is a GET of the path of the group and version. A new
reason of the condition: a case in `_check_remote`.

Source: kube-aggregator's availability controllers, with their reasons, messages and times.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import aiohttp

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import connection_messages, proxy_headers, remote_versions, service_resolver
from podscaler.controlplane.aggregator.remote_versions import API_SERVICES, Remote, RemoteVersions
from podscaler.controlplane.aggregator.server_connections import APIServerConnections, UnusableBundle
from podscaler.controlplane.aggregator.service_resolver import SERVICES, Address, Unreachable
from podscaler.controlplane.controllers.endpoints.slices import SERVICE_NAME
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES
from podscaler.controlplane.controllers.framework.control_loop import ExponentialFailureRateLimiter, Reconciler, Watched
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

CHECK_PERIOD_S = 30.0
CHECK_TIMEOUT_S = 5.0
FIRST_RETRY_S = 0.1
RETRY_MAX_S = 30.0
"""The delay after a check that failed: FIRST_RETRY_S, doubled with each further failure, up to RETRY_MAX_S."""
CHECKED_ENDPOINTS_MAX = 5
"""The number of endpoints of one server that are checked at once; one that responds is enough."""


class _ConditionState(NamedTuple):
    """The fields of the condition Available that a check determines."""

    status: str
    reason: str
    message: str


_LOCAL_STATE = _ConditionState("True", "Local", "Local APIServices are always available")
_PASSED_STATE = _ConditionState("True", "Passed", "all checks passed")


class Availability(Reconciler[str]):
    """The controller of the condition Available.

    Args:
        registry: the APIServices, Services and EndpointSlices.
        remotes: the APIServices that other servers serve.
        connections: sends the checks.
        clock: the times of condition transitions.
    """

    name = "apiservice-availability"

    def __init__(
        self, registry: Registry, remotes: RemoteVersions, connections: APIServerConnections, clock: Clock
    ) -> None:
        self._registry = registry
        self._remotes = remotes
        self._connections = connections
        self._clock = clock
        self._backoff: ExponentialFailureRateLimiter[str] = ExponentialFailureRateLimiter(FIRST_RETRY_S, RETRY_MAX_S)

    def watches(self) -> Sequence[Watched[str]]:
        """APIServices, Services and their EndpointSlices."""
        return [
            Watched(API_SERVICES, lambda event: [event.object["metadata"]["name"]]),
            Watched(SERVICES, self._keys_of_service),
            Watched(SLICES, self._keys_of_slice),
        ]

    def prime(self) -> Iterable[str]:
        """The names of all APIServices."""
        return [api_service["metadata"]["name"] for api_service in self._registry.list(API_SERVICES)]

    async def sync(self, key: str) -> float | None:
        """Check the APIService named `key` and update its condition.

        Returns the seconds until the next check; None if there is none (it is deleted, or this server serves it).
        Raises StatusError if the condition cannot be written.
        """
        api_service = self._registry.find(API_SERVICES, "", key)
        if api_service is None:
            self._backoff.succeeded(key)
            return None
        remote = remote_versions.parse_api_service(api_service)
        state = _LOCAL_STATE if remote is None else await self._check_remote(remote)
        if state is not None:
            await self._write_condition(key, api_service["spec"], state)
        if remote is None:
            return None
        if state is None or state.reason == "FailedDiscoveryCheck":  # other failures end with a change that is watched
            return self._backoff.failed(key)
        self._backoff.succeeded(key)
        return CHECK_PERIOD_S

    async def _check_remote(self, remote: Remote) -> _ConditionState | None:
        """The state of the condition; None (no change, as kube-aggregator) if the caBundle holds no certificates."""
        namespace, name = remote.namespace, remote.service
        service_text = f'service/{name} in "{namespace}"'
        service = self._registry.find(SERVICES, namespace, name)
        if service is None:
            return _ConditionState("False", "ServiceNotFound", f"{service_text} is not present")
        if service["spec"].get("type", "ClusterIP") == "ClusterIP":
            port = service_resolver.find_port(service, remote.port)
            if port is None:
                message = f"{service_text} is not listening on port {remote.port}"
                return _ConditionState("False", "ServicePortError", message)
            slices = service_resolver.slices_of(self._registry, service)
            if not slices:
                message = f"cannot find endpointslices for {service_text}"
                return _ConditionState("False", "EndpointsNotFound", message)
            port_name = port.get("name", "")
            if next(service_resolver.ready_addresses(slices, port_name), None) is None:
                message = f'endpointslices for {service_text} have no addresses with port name "{port_name}"'
                return _ConditionState("False", "MissingEndpoints", message)
        try:
            failure = await self._find_failure(remote)
        except UnusableBundle:
            return None
        return _PASSED_STATE if failure is None else _ConditionState("False", "FailedDiscoveryCheck", failure)

    async def _find_failure(self, remote: Remote) -> str | None:
        """The message why no endpoint responds, None if one does. Raises UnusableBundle."""
        try:
            addresses = service_resolver.resolve(self._registry, remote.namespace, remote.service, remote.port)
        except Unreachable as error:
            return str(error)
        checks = (self._check_endpoint(remote, address) for address in addresses[:CHECKED_ENDPOINTS_MAX])
        failures = await asyncio.gather(*checks)
        return None if None in failures else failures[-1]  # one message stands for all

    async def _check_endpoint(self, remote: Remote, address: Address) -> str | None:
        """The message why an endpoint does not respond, None if it does. Raises UnusableBundle."""
        host, port = address
        url = f"https://{host}:{port}{remote.path}"
        headers = proxy_headers.user_headers(proxy_headers.AGGREGATOR_USER)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                response = await self._connections.send(remote, address, path=remote.path, headers=headers)
                response.release()
        except TimeoutError:
            problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return f'failing or missing response from {url}: Get "{url}": {problem}'
        except (aiohttp.ClientError, OSError) as error:
            problem = connection_messages.go_message(error, *address, remote.server_name)
            return f'failing or missing response from {url}: Get "{url}": {problem}'
        if not 200 <= response.status < 300:
            return f"failing or missing response from {url}: bad status from {url}: {response.status}"
        return None

    async def _write_condition(self, key: str, spec: Object, state: _ConditionState) -> None:
        """Set the condition, unless the APIService has that state or (after the check) another `spec`."""

        def set_condition(api_service: Object) -> None:
            current = remote_versions.condition_of(api_service)
            if api_service["spec"] != spec or (current and _state_of(current) == state):
                return
            is_same_status = current.get("status") == state.status
            transition_time = current.get("lastTransitionTime") if is_same_status else rfc3339(self._clock.now_ns())
            condition = {
                "type": remote_versions.AVAILABLE,
                "status": state.status,
                "lastTransitionTime": transition_time,
                "reason": state.reason,
                "message": state.message,
            }
            conditions = (api_service.get("status") or {}).get("conditions") or []
            others = [other for other in conditions if other.get("type") != remote_versions.AVAILABLE]
            api_service["status"] = {"conditions": [*others, condition]}

        stored = self._registry.find(API_SERVICES, "", key)
        if stored is None or _state_of(remote_versions.condition_of(stored)) == state:
            return
        try:
            await self._registry.mutate(API_SERVICES, "", key, set_condition, subresource="status")
        except StatusError as error:
            if error.code != 404:  # it was deleted meanwhile
                raise

    def _keys_of_service(self, event: ObjectEvent) -> Iterable[str]:
        """The APIServices whose server is the changed Service."""
        metadata = event.object["metadata"]
        return self._api_services_served_by(metadata["namespace"], metadata["name"])

    def _keys_of_slice(self, event: ObjectEvent) -> Iterable[str]:
        """The APIServices whose Service the changed EndpointSlice belongs to."""
        metadata = event.object["metadata"]
        name = (metadata.get("labels") or {}).get(SERVICE_NAME)
        return self._api_services_served_by(metadata["namespace"], name) if name else ()

    def _api_services_served_by(self, namespace: str, name: str) -> Iterable[str]:
        """The names of the APIServices whose server is the Service `namespace`/`name`."""
        for remote in self._remotes.all():
            if (remote.namespace, remote.service) == (namespace, name):
                yield remote.name


def _state_of(condition: Object) -> _ConditionState:
    return _ConditionState(condition.get("status", ""), condition.get("reason", ""), condition.get("message", ""))
