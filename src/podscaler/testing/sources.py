"""A fake system for external metrics, and builders of MetricSources.

`FakeSystem.open` is a `podscaler.sources.protocol.SourceFactory`; its sources pass the contract tests of the real ones.
"""

import asyncio
from typing import Any

from podscaler.api.kinds.autoscaling import metric_source_schema
from podscaler.api.machinery.meta import ObjectMeta
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.protocol import Number, SourceConfig, SourceFactory


class FakeSystem:
    """A system with one number.

    Args:
        number: the number that reads return; an exception: they raise it.

    Attributes:
        configs: the configurations of the sources that were opened, in order.
        reads: how many reads began.
        closed: how many sources were closed.
        responds: reads wait while it is not set.
    """

    def __init__(self, number: Number | Exception = 0) -> None:
        self.number: Number | Exception = number
        self.configs: list[SourceConfig] = []
        self.reads = 0
        self.closed = 0
        self.responds = asyncio.Event()
        self.responds.set()
        self._begun = asyncio.Semaphore(0)

    async def wait_for_read(self) -> None:
        """Return once one more read has begun than at the last call."""
        await self._begun.acquire()

    async def read(self) -> Number:
        """The number. Raises it if it is an exception."""
        self.reads += 1
        self._begun.release()
        await self.responds.wait()
        if isinstance(self.number, Exception):
            raise self.number
        return self.number

    def open(self, config: SourceConfig) -> "FakeSource":
        """A source of this system."""
        self.configs.append(config)
        return FakeSource(self)

    def find_factory(self, name: str, is_custom: bool) -> SourceFactory:
        """`open`, for every type."""
        del name, is_custom
        return self.open


class FakeSource:
    """A source of a FakeSystem; a `podscaler.sources.protocol.ExternalSource`."""

    query = "fake number of the fake system"

    def __init__(self, system: FakeSystem) -> None:
        self._system = system

    async def read(self) -> Number:
        """The number of the system. Raises its exception."""
        return await self._system.read()

    async def close(self) -> None:
        """Count the end of a source."""
        self._system.closed += 1


def metric_source(
    name: str = "jobs",
    namespace: str = "shop",
    *,
    labels: dict[str, str] | None = None,
    generation: int = 1,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> MetricSource:
    """A MetricSource; its spec has the section `custom` with the type `fake` unless `spec` has another one."""
    meta = ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", labels=labels, generation=generation)
    fake = {} if spec.keys() & set(metric_source_schema.SYSTEM_TYPES) else {"custom": {"type": "fake"}}
    return MetricSource(meta, fake | spec, status or {})


def with_password(secret: str = "login", key: str = "password") -> list[dict[str, Any]]:  # noqa: S107  # names, no secret
    """The field `credentials` of a spec, with the password from that key of that Secret."""
    return [{"name": "password", "secretKeyRef": {"name": secret, "key": key}}]
