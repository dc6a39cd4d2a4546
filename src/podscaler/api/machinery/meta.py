"""Common parts of typed API objects: ObjectMeta, OwnerReference, the Status of failed requests, resource versions.

The client, the recorder and the replay decode them from JSON with msgspec: `msgspec.json.decode(body, type=Status)`.
Field names are the API's in snake case. Times and quantities stay texts, so that an object is written back unchanged.
A new field of the API is added here: decoding drops fields that a struct does not have.

Differs: `metadata.managedFields` is left out: it is large, and a server keeps the stored one where it is absent.

Source: meta/v1 (docs/spec/api.md, docs/spec/controller.md 10 (REST requests)).
"""

from typing import Any

import msgspec


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The base of typed API objects: immutable; in JSON, names in camel case, and no fields with their default value.

    Objects have no reference cycles, so the garbage collector does not track them (`gc=False`).
    """


class OwnerReference(Wire, frozen=True):
    """meta/v1 OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """meta/v1 ObjectMeta without managedFields."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class Status(Wire, frozen=True, tag_field="kind", tag="Status"):
    """meta/v1 Status: why a request failed; `code` is 0 for a failure in the client."""

    api_version: str = ""
    metadata: dict[str, Any] | None = None
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


def is_newer_version(version: str, than: str) -> bool:
    """Whether resource version `version` is later than `than`; False if one of them is no number.

    Source: client-go's comparison of resource versions, which are decimal numbers since Kubernetes 1.35.
    """
    if not (version.isascii() and version.isdigit() and than.isascii() and than.isdigit()):
        return False
    return int(version) > int(than)
