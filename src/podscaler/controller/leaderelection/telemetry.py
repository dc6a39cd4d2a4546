"""Defines the Prometheus metrics of leader election: client-go's two, and three of shards, which only podscaler has.

Electors, LeaseHolders and `sharding` report to them; the controller's /metrics has them. A further metric: also in
docs/high-availability.md.

Source: k8s.io/component-base/metrics/prometheus/clientgo/leaderelection.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge

GROUP = "Please make sure to group by name."
NAME = "'name' is the string used to identify the lease."


class ElectionMetrics:
    """client-go's metrics: which leases this process holds, and renewals that took more than one request."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._status = Gauge(
            "leader_election_master_status",
            "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, "
            f"1 indicates master. {NAME} {GROUP}",
            ["name"],
            registry=registry,
        )
        self._slow_path = Counter(
            "leader_election_slowpath",
            f"[ALPHA] Total number of slow path exercised in renewing leader leases. {NAME} {GROUP}",
            ["name"],
            registry=registry,
        )
        self._registry = registry

    def status(self, name: str, *, is_holder: bool) -> None:
        """Set whether this process holds a lease."""
        self._status.labels(name).set(1 if is_holder else 0)

    def slow_path(self, name: str) -> None:
        self._slow_path.labels(name).inc()


class ShardMetrics:
    """Gauges of shards: held by this process, held by none, and the number of processes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._held = Gauge("podscaler_shards_held", "Shards that this process holds.", registry=registry)
        self._free = Gauge("podscaler_shards_free", "Shards that nobody holds.", registry=registry)
        self._members = Gauge(
            "podscaler_shard_members", "Processes that share the work, as this one sees it.", registry=registry
        )

    def show(self, *, held_shards: int, free: int, members: int) -> None:
        """Set the gauges."""
        self._held.set(held_shards)
        self._free.set(free)
        self._members.set(members)
