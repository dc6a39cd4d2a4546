"""Defines the decoded MetricSource: the object as the informer caches it, and SourceSpec, its spec with checked types.

A MetricSource is a custom resource of podscaler: it states from which system (Redis, Kafka, ...) an external metric is
read.

The informer decodes objects leniently, so that an invalid one is found by its name, and its status can report why it is
invalid; `parse_spec`, which `open_sources` calls before a read, is strict.

Source: `podscaler.api.kinds.autoscaling.metric_source_schema`, which an API server has checked the object with.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from podscaler.api.kinds.autoscaling import metric_source, metric_source_schema
from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.sources.protocol import InvalidSource, TLSSettings

RESOURCE = f"{metric_source.PLURAL}.{metric_source.GROUP}"
BASE_PATH = f"/apis/{metric_source.GROUP}/{metric_source.VERSION}"


class MetricSource(Wire, frozen=True):
    """A MetricSource as it was read."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class SecretKeyRef(Wire, frozen=True):
    """A key of a Secret in the namespace of the MetricSource."""

    name: str
    key: str


class CredentialReference(Wire, frozen=True):
    """The name of a credential (`username`, `password`, `token`), and the key of a Secret that has its value."""

    name: str
    secret_key_ref: SecretKeyRef


class _TLS(Wire, frozen=True):
    """The section `tls` of a spec."""

    ca_bundle: str = ""
    insecure_skip_verify: bool = False


class _CommonFields(Wire, frozen=True):
    """The fields of the spec that all types share."""

    timeout_seconds: int = metric_source_schema.DEFAULT_TIMEOUT_S
    credentials: tuple[CredentialReference, ...] = ()
    tls: _TLS | None = None


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A checked spec.

    Attributes:
        type: the type of the source, by which `podscaler.sources.source_types` finds its factory.
        is_custom: whether an entry point of another distribution has that type.
        settings: the section of the type, as JSON-ready data.
        timeout_s: the time limit of a read.
        credentials: references to Secrets.
        tls: how the server is verified; None if the spec has no section tls.
    """

    type: str
    is_custom: bool
    settings: Mapping[str, Any]
    timeout_s: float
    credentials: tuple[CredentialReference, ...]
    tls: TLSSettings | None


_OBJECT_DECODER = msgspec.json.Decoder(MetricSource)


def decode(source_json: msgspec.Raw | bytes) -> MetricSource:
    """The object in JSON. Raises ValueError if it is none."""
    return _OBJECT_DECODER.decode(source_json)


def parse_spec(spec: Mapping[str, Any]) -> SourceSpec:
    """The checked spec of a MetricSource, which is given as its JSON object. Raises InvalidSource."""
    try:
        common = msgspec.convert(dict(spec), _CommonFields)
    except msgspec.ValidationError as error:
        raise InvalidSource(f"the spec is invalid: {error}") from None
    sections = [name for name in metric_source_schema.SYSTEM_TYPES if isinstance(spec.get(name), dict)]
    if len(sections) != 1:
        raise InvalidSource(f"the spec must have exactly one of {', '.join(metric_source_schema.SYSTEM_TYPES)}")
    if not 1 <= common.timeout_seconds <= metric_source_schema.TIMEOUT_MAX_S:
        raise InvalidSource(f"timeoutSeconds must be from 1 to {metric_source_schema.TIMEOUT_MAX_S}")
    source_type, settings = sections[0], spec[sections[0]]
    is_custom = source_type == "custom"
    if is_custom:
        source_type, settings = str(settings.get("type", "")), settings.get("settings") or {}
    timeout_s = float(common.timeout_seconds)
    return SourceSpec(source_type, is_custom, settings, timeout_s, common.credentials, _tls_settings(common.tls))


def _tls_settings(section: _TLS | None) -> TLSSettings | None:
    """The settings in a section tls; None if there is none. Raises InvalidSource."""
    if section is None:
        return None
    try:
        authorities_pem = base64.b64decode(section.ca_bundle, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise InvalidSource("tls.caBundle must be certificates in PEM, in base64") from None
    return TLSSettings(authorities_pem, is_verified=not section.insecure_skip_verify)
