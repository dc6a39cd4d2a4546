"""Defines ExternalSource, the protocol by which external metrics are read from a system, such as Redis or Kafka.

The systems in `podscaler.sources.systems` implement it, and so do sources of other distributions, which entry points
name (`podscaler.sources.source_types`). `podscaler.sources.open_sources` opens, reads and closes them. Rules for an
implementation:

1. The factory opens no connection: it is called in a thread. It raises InvalidSource for settings that can never work.
2. `read` connects if it has to, and keeps connections until `close`. Reads of one source do not overlap. A read is
   cancelled at its time limit. After a failure other than InvalidValue the source is closed, and a new one is opened.
3. Any exception is a failed read. Its text is shown to users after the values of credentials were removed from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError

Number = int | float | Decimal


class SourceError(PodscalerError):
    """A read that failed; the text has no credentials.

    Attributes:
        reason: the reason of the condition Ready in the status.
    """

    reason: ClassVar[str] = "ReadFailed"


class InvalidSource(SourceError):
    """The spec of a MetricSource can never work."""

    reason = "InvalidSpec"


class InvalidValue(SourceError):
    """The system works, and its response has no number that a metric can have."""

    reason = "InvalidValue"


class CredentialsUnavailable(SourceError):
    """A Secret is missing, may not be used, or lacks a key."""

    reason = "CredentialsUnavailable"


class ClientMissing(SourceError):
    """The Python client of the system is not installed, or no installed distribution has a source of that type."""

    reason = "ClientMissing"


class ReadTimeout(SourceError):
    """The system did not respond in time."""

    reason = "TimedOut"


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """How a server is verified.

    Attributes:
        authorities_pem: certificates of authorities; empty for the machine's authorities.
        is_verified: whether the certificate is verified; if not, any is accepted.
    """

    authorities_pem: str = ""
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The argument of a factory.

    Attributes:
        settings: the system's section of the spec, as JSON-ready data.
        clock: for sources that depend on the time.
        credentials: the values by name (`username`, `password`, `token`); absent names are not used.
        tls: how the server is verified; None if the spec has no section tls.
        timeout_s: how long a read may take.
        folder: the folder below which the system `file` may read; None if it may read no file.
    """

    settings: Mapping[str, Any]
    clock: Clock
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: TLSSettings | None = None
    timeout_s: float = 5.0
    folder: Path | None = None


class ExternalSource(Protocol):
    """Reads one number from a system, by the module's rules."""

    @property
    def query(self) -> str:
        """The query and the system, in one line without credentials (`redis list jobs at 10.0.0.7:6379/0`)."""
        ...

    async def read(self) -> Number:
        """The number now. May raise anything; raises InvalidValue if the response has no such number."""
        ...

    async def close(self) -> None:
        """Close all connections; called once, also after failures. May raise anything, which is logged."""
        ...


SourceFactory = Callable[[SourceConfig], ExternalSource]
"""Makes the source for a configuration, usually its class."""


class SystemSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The base of the typed settings of a system."""


S = TypeVar("S", bound=SystemSettings)


def parse_settings(config: SourceConfig, settings_type: type[S]) -> S:
    """The settings of `config` as that type; unknown fields are ignored. Raises InvalidSource."""
    try:
        return msgspec.convert(dict(config.settings), settings_type)
    except msgspec.ValidationError as error:
        raise InvalidSource(f"the settings are invalid: {error}") from None
