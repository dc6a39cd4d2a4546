"""Writes the spec of an autoscaler for a viewer, where the server allows writes (`--allow-writes`).

`podscaler.dashboard.server` calls `write` with the viewer's client, so that the API server decides whether the viewer
may write. The patch has the resourceVersion that the viewer saw: an object that changed meanwhile is not overwritten. A
further field: in WRITABLE_FIELDS.
"""

from typing import Any

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError, UsageError
from podscaler.controller.options.autoscaler_kinds import KINDS, AutoscalerKind
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client

WRITABLE_FIELDS = frozenset({"minReplicas", "maxReplicas", "metrics", "behavior", "onMetricFailure"})
"""The fields of a spec that may be written; the target is not one of them."""


class SpecChange(msgspec.Struct, rename="camel"):
    """The body of a request: fields of the spec as in a merge patch, and the version of the object that was seen."""

    spec: dict[str, Any]
    resource_version: str


class WrittenSpec(msgspec.Struct, rename="camel"):
    """The response: the new version of the object."""

    resource_version: str


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _WrittenObject(msgspec.Struct):
    metadata: _Meta


async def write(client: Client, kind: str, key: tuple[str, str], change: SpecChange) -> WrittenSpec:
    """Write fields of a spec.

    Args:
        client: the viewer's.
        kind: of the autoscaler, such as `PodAutoscaler`; empty: HorizontalPodAutoscaler.
        key: its namespace and name.
        change: the fields, and the resourceVersion that the viewer saw.

    Raises:
        UsageError: a field that may not be written, no field, no version, or an unknown kind.
        StatusError: as the API server responds: 403, 409 where the object changed, 422 for an invalid spec; code 0
            for a response that cannot be decoded.
    """
    if forbidden := sorted(change.spec.keys() - WRITABLE_FIELDS):
        raise UsageError(f"spec.{forbidden[0]} cannot be written here, only {', '.join(sorted(WRITABLE_FIELDS))}")
    if not change.spec or not change.resource_version:
        raise UsageError("a change needs at least one field of the spec, and the resourceVersion that was seen")
    autoscaler_kind = _parse_kind(kind)
    patch = {"metadata": {"resourceVersion": change.resource_version}, "spec": change.spec}
    namespace, name = key
    path = autoscaler_kind.path(namespace, urls.object_name(name))
    body = await client.patch(path, msgspec.json.encode(patch), subject=f"{autoscaler_kind.plural} {name}")
    try:
        return WrittenSpec(msgspec.json.decode(body, type=_WrittenObject).metadata.resource_version)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"the response cannot be read: {error}", code=0) from None


def _parse_kind(kind: str) -> AutoscalerKind:
    """The kind of that name; empty: the first, HorizontalPodAutoscaler. Raises UsageError."""
    for autoscaler_kind in KINDS:
        if kind in ("", autoscaler_kind.kind):
            return autoscaler_kind
    raise UsageError(f'"{kind}" is no kind of autoscalers')
