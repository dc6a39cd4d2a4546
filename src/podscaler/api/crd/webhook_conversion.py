"""Converts custom resources between versions by the responses of a conversion webhook (strategy `Webhook`).

`records` calls `convert` synchronously, also inside transactions, which cannot wait for the network. Results come from
the scope of the current task, by default that of one request; a missing one raises `ConversionNeeded`. Then
`controlplane.registry.remote_conversion` calls the webhook, stores the result in the scope and runs the step again.

Invariant: a webhook changes no metadata but labels and annotations, so results are found again for the same object with
another uid, time or resourceVersion.

Source: kube-apiserver's webhook converter (restoreObjectMeta).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError

CHANGED_METADATA = ("labels", "annotations")
"""The members of metadata that a webhook may change."""
_KEY_METADATA = ("name", "namespace", *CHANGED_METADATA)
_Scope = dict[tuple[str, bytes], bytes | None]
"""The converted objects as JSON; None for a conversion that failed, and that its step can do without."""
_SCOPE: ContextVar[_Scope | None] = ContextVar("podscaler-converted-objects", default=None)


class ConversionNeeded(PodscalerError):
    """A webhook has to convert objects before the step that raised this can be run again.

    Attributes:
        webhook: `spec.conversion.webhook` of the definition.
        objects: what to convert; not empty.
        api_version: the wanted version.
        stored_revision: the resourceVersion of the stored object that a write has to convert; 0 for other objects.
        is_optional: whether the step goes another way where the conversion fails, which `has_failed` tells it.
    """

    def __init__(self, webhook: Object, objects: Sequence[Object], api_version: str) -> None:
        super().__init__(f"{len(objects)} objects have to be converted to {api_version} by a webhook")
        self.webhook = webhook
        self.objects = objects
        self.api_version = api_version
        self.stored_revision = 0
        self.is_optional = False


@contextmanager
def scope(*, is_new: bool = False) -> Iterator[None]:
    """Keep converted objects until the end of the block, in the scope that is open already unless `is_new`."""
    if _SCOPE.get() is not None and not is_new:
        yield
        return
    token = _SCOPE.set({})
    try:
        yield
    finally:
        _SCOPE.reset(token)


def convert(webhook: Object, obj: Object, api_version: str) -> Object:
    """A converted copy of an object. Raises ConversionNeeded."""
    converted_json = (_SCOPE.get() or {}).get(_scope_key(obj, api_version))
    if converted_json is None:
        raise ConversionNeeded(webhook, [obj], api_version)
    converted: Object = msgspec.json.decode(converted_json)
    converted_metadata = converted["metadata"]
    kept_metadata = {name: value for name, value in obj["metadata"].items() if name not in CHANGED_METADATA}
    return {**converted, "metadata": {**kept_metadata, **converted_metadata}}


def find_missing(webhook: Object, objects: Iterable[Object], api_version: str) -> ConversionNeeded | None:
    """What the scope lacks to convert all objects; None if nothing is missing."""
    scope = _SCOPE.get() or {}
    missing = [
        obj for obj in objects if obj["apiVersion"] != api_version and scope.get(_scope_key(obj, api_version)) is None
    ]
    return ConversionNeeded(webhook, missing, api_version) if missing else None


def keep_converted(needed: ConversionNeeded, converted: Iterable[Object]) -> None:
    """Store the converted objects, in the order of `needed.objects`, in the scope of the current task."""
    scope = _SCOPE.get()
    assert scope is not None, "conversions happen in a scope"
    for obj, converted_object in zip(needed.objects, converted, strict=True):
        changed_metadata = {
            name: converted_object["metadata"][name]
            for name in CHANGED_METADATA
            if converted_object["metadata"].get(name)
        }
        scope[_scope_key(obj, needed.api_version)] = msgspec.json.encode(
            {**converted_object, "metadata": changed_metadata}
        )


def keep_failed(needed: ConversionNeeded) -> None:
    """Note in the scope of the current task that an optional conversion failed."""
    scope = _SCOPE.get()
    assert scope is not None, "conversions happen in a scope"
    for obj in needed.objects:
        scope[_scope_key(obj, needed.api_version)] = None


def has_failed(needed: ConversionNeeded) -> bool:
    """Whether the scope of the current task has noted that one of these conversions failed."""
    scope = _SCOPE.get() or {}
    keys = [_scope_key(obj, needed.api_version) for obj in needed.objects]
    return any(key in scope and scope[key] is None for key in keys)


def _scope_key(obj: Object, api_version: str) -> tuple[str, bytes]:
    """The key of a result: the version, and the object with the only metadata that its webhook may depend on."""
    metadata = {name: obj["metadata"][name] for name in _KEY_METADATA if obj["metadata"].get(name)}
    return api_version, msgspec.json.encode({**obj, "metadata": metadata}, order="sorted")
