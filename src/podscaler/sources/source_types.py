"""Finds the factory of a type of source: a built-in system (`redis`), or an entry point of another distribution.

`podscaler.sources.open_sources` calls it in a thread when a source is opened: the client libraries are imported then,
not when the program starts. A distribution adds a type with an entry point of the group GROUP whose object is a
SourceFactory; a MetricSource names it in `spec.custom.type`. An entry point does not replace a built-in type, because
those have sections of their own in the spec. A new built-in system: a module in `systems`, an entry in BUILT_IN, and a
section in `podscaler.api.kinds.autoscaling.metric_source_schema`.
"""

from collections.abc import Callable
from importlib import import_module, metadata

from podscaler.sources.protocol import ClientMissing, SourceFactory

GROUP = "podscaler.metric_sources"
"""The group of the entry points."""
INSTALL_COMMAND = "pip install 'podscaler[sources]'"
_SYSTEMS = "podscaler.sources.systems"
BUILT_IN = {
    "prometheus": f"{_SYSTEMS}.prometheus:PrometheusSource",
    "redis": f"{_SYSTEMS}.redis:RedisSource",
    "postgresql": f"{_SYSTEMS}.postgresql:PostgresqlSource",
    "rabbitmq": f"{_SYSTEMS}.rabbitmq:RabbitmqSource",
    "nats": f"{_SYSTEMS}.nats:NatsSource",
    "kafka": f"{_SYSTEMS}.kafka:KafkaSource",
    "http": f"{_SYSTEMS}.http:HttpSource",
    "file": f"{_SYSTEMS}.file:FileSource",
    "cron": f"{_SYSTEMS}.cron:CronSource",
}
"""Module and class of each system, by the section of the spec."""

FindFactory = Callable[[str, bool], SourceFactory]
"""A function of the type, and of whether it is `spec.custom.type`, that returns the factory."""


def find_factory(name: str, is_custom: bool) -> SourceFactory:
    """The factory of a type.

    Args:
        name: a key of BUILT_IN, or the name of an entry point.
        is_custom: whether it is the name of an entry point.

    Raises:
        ClientMissing: there is no such entry point, or a module or client library cannot be imported.
        KeyError: a built-in type has no entry in BUILT_IN; `metric_source.parse_spec` returns none of those.
    """
    if is_custom:
        return _load_entry_point(name)
    module, _, attribute = BUILT_IN[name].partition(":")
    try:
        factory: SourceFactory = getattr(import_module(module), attribute)
    except ImportError:
        raise ClientMissing(f"the Python client of {name} is not installed: {INSTALL_COMMAND}") from None
    return factory


def _load_entry_point(name: str) -> SourceFactory:
    """The factory that an entry point of another distribution names. Raises ClientMissing."""
    entry_point = next(iter(metadata.entry_points(group=GROUP, name=name)), None)
    if entry_point is None:
        raise ClientMissing(f"no installed distribution has an entry point {name} in the group {GROUP}")
    try:
        factory: SourceFactory = entry_point.load()
    except (ImportError, AttributeError) as error:
        raise ClientMissing(f"the entry point {entry_point.value} cannot be imported: {error}") from None
    return factory
